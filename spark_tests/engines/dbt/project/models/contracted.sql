select cast(id as bigint) as id, cast(name as string) as name from {{ ref('customer_view') }}
