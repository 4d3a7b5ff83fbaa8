{{ config(partition_by=['day'], tblproperties={'delta.enableChangeDataFeed': 'true'},
          post_hook=["optimize {{ this }}", "delete from {{ this }} where amount < 6",
                     "vacuum {{ this }} dry run", "comment on table {{ this }} is 'orders by day'"]) }}
-- a comment inside

with all_orders as (select * from {{ ref('orders') }})
select day, count(*) as orders, sum(amount) as amount
from all_orders

group by day
