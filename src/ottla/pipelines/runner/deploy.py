"""From a file to a deployment: checked, planned, with its secrets and its folder."""

import os
from pathlib import Path

from ottla.model.defaults import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP
from ottla.pipelines.lint import check_file
from ottla.pipelines.parts import CheckedPipeline
from ottla.pipelines.plan import make_plan
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.versions import with_version


def deploy(path: Path, *, bootstrap: str | None, state_dir: Path, version: str | None = None) -> Deployment:
    """`bootstrap` wins over the file's, which wins over the environment's."""
    return _deployment(check_file(path), bootstrap, state_dir, version)


def deploy_active(path: Path, *, bootstrap: str | None, state_dir: Path) -> Deployment:
    """With the version that was last switched to."""
    checked = check_file(path)
    return _deployment(checked, bootstrap, state_dir, StateFolder(state_dir, checked.name).active_version)


def _deployment(first: CheckedPipeline, bootstrap: str | None, state_dir: Path, version: str | None) -> Deployment:
    checked = with_version(first, version)
    secrets = Secrets(checked.base_dir)
    brokers, said_by = _brokers(bootstrap, checked.spec.bootstrap)
    return Deployment(
        plan=make_plan(checked, version),
        secrets=secrets,
        bootstrap=brokers,
        bootstrap_from=said_by,
        folder=StateFolder(state_dir, checked.name).path,
        version=version,
    )


def _brokers(given: str | None, in_file: str | None) -> tuple[str, str]:
    """The brokers, and where they are named."""
    for brokers, said_by in (
        (given, "--bootstrap-server"),
        (in_file, "`bootstrap` in the file"),
        (os.environ.get(BOOTSTRAP_VARIABLE), f"${BOOTSTRAP_VARIABLE}"),
    ):
        if brokers:
            return brokers, said_by
    return DEFAULT_BOOTSTRAP, "the default"
