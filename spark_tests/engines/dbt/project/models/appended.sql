{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns') }}
select id, amount {% if is_incremental() %}, 'later' as step {% endif %}
from {{ ref('orders') }}
{% if is_incremental() %} where id >= (select max(id) from {{ this }}) {% endif %}
