{{ config(materialized='view') }}
-- depends_on: {{ ref('daily') }}
select * from {{ this.schema }}.daily version as of 0
