"""What can be told of a query from its text alone, without Spark: whether it looks at more than one row at a time."""

import re

_NOISE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`", re.DOTALL)
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_MANY_ROWS = re.compile(
    r"\bGROUP\s+BY\b|\bHAVING\b|\bDISTINCT\b|\bINTERSECT\b|\bEXCEPT\b(?!\s*\()|\bMINUS\b|\bUNION\b(?!\s+ALL\b)"
    r"|\bOVER\s*\(|\|>\s*AGGREGATE\b|\bPIVOT\b",
    re.IGNORECASE,
)

# One SELECT over one frame that leaves rows out or gives them other columns, and nothing else.
_ROW_BY_ROW = re.compile(
    r"\s*SELECT\b(?:(?!\bFROM\b).)*\bFROM\s+\w+(?:\s+AS)?(?:\s+(?!WHERE\b)\w+)?\s*(?:\bWHERE\b.*)?;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_NOT_ROW_BY_ROW = re.compile(
    r"\bSELECT\b.*\bSELECT\b|\|>|/\*\+|\b(ALL|JOIN|UNION|ORDER|LIMIT|OFFSET|LATERAL|CLUSTER|DISTRIBUTE|SORT|WINDOW|"
    r"TABLESAMPLE|explode|explode_outer|posexplode|posexplode_outer|inline|inline_outer|stack|json_tuple|"
    r"variant_explode|variant_explode_outer|raise_error|assert_true)\b",
    re.IGNORECASE | re.DOTALL,
)

# Spark's aggregate functions; a test asks Spark whether the list is complete.
AGGREGATES = frozenset(
    {
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "collect_union",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "grouping_id",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "measure",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "tuple_intersection_agg_double",
        "tuple_intersection_agg_integer",
        "tuple_sketch_agg_double",
        "tuple_sketch_agg_integer",
        "tuple_union_agg_double",
        "tuple_union_agg_integer",
        "var_pop",
        "var_samp",
        "variance",
    }
)


def looks_at_many_rows(query: str) -> bool:
    """Whether a query's result for one row depends on others, so that it must not be run batch by batch."""
    bare = _NOISE.sub(" '' ", query)
    if _MANY_ROWS.search(bare):
        return True
    return any(name.lower() in AGGREGATES for name in _CALL.findall(bare))


def goes_row_by_row(query: str) -> bool:
    """Whether each row becomes one row or none, by itself. Whatever is not plainly so counts as not."""
    bare = _NOISE.sub(" '' ", query)
    if looks_at_many_rows(query) or _NOT_ROW_BY_ROW.search(bare):
        return False
    return _ROW_BY_ROW.fullmatch(bare) is not None
