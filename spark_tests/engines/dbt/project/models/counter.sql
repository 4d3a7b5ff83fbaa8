-- replaced by a query on itself, once it is there
{% set before = load_relation(this) %}
select cast(count(*) as bigint) as n from {{ before if before is not none else ref('orders') }}
{% if before is not none %} union all select n + 10 as n from {{ this }} {% endif %}
