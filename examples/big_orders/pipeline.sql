-- ottla:
--   # A pipeline in nothing but SQL: this comment says where data comes from and goes to, each statement is a step.
--   name: big-orders
--   sources: {orders: {topic: orders, format: json, schema: "id STRING, item STRING, amount DOUBLE"}}
--   sinks: [{topic: orders.big, key: id, format: json}]
--   errors: {dead_letter: orders.dead}
--   tests:
--     - given: {orders: [{id: a, item: pear, amount: 90}, {id: b, item: tea, amount: 5}]}
--       expect: [{id: a, item: PEAR, gross: 108.0}]

-- as: priced
SELECT id, upper(item) AS item, round(amount * 1.2, 2) AS gross FROM orders;

-- step: {expect: {rule: "gross < 1e6", otherwise: dead_letter}}

SELECT * FROM input WHERE gross > 100;
