{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='day', begin='2025-06-01',
          batch_size='year', lookback=1, partition_by=['day']) }}
select id, amount, day from {{ ref('orders') }}
