"""Alert rules and dashboards as files, made from the declarations of the metrics that they ask for."""
