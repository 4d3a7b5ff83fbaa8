{{ config(materialized='view') }}
select id, name, country from {{ ref('customers') }}
