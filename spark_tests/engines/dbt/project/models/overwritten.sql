{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']) }}
select id, amount + {{ var('rise', 0) }} as amount, day from {{ ref('orders') }}
{% if is_incremental() %} where day = date'2026-01-02' {% endif %}
