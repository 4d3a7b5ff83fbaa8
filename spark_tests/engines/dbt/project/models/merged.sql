{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id',
          merge_exclude_columns=['first_amount']) }}
select id, amount + {{ var('rise', 0) }} as amount, amount as first_amount from {{ ref('orders') }}
{% if is_incremental() %} union all select 100 + max(id), 1, 1 from {{ this }} {% endif %}
