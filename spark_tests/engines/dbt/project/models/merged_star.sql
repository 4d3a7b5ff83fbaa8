{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['id', 'day'],
          incremental_predicates=["DBT_INTERNAL_DEST.day >= date'2026-01-02'"]) }}
select id, day, amount + {{ var('rise', 0) }} as amount from {{ ref('orders') }} where day >= date'2026-01-02'
