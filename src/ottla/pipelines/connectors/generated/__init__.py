"""Rows out of nothing, which a checker can compute again with `build`."""

from ottla.pipelines.connectors.generated.rows import build as build
