#!/bin/sh
# Writes the repository's address into the package's metadata: address.sh https://HOST/OWNER/NAME
# A checkout does not know it; the workflow that publishes does.
set -eu
sed -i "s|^\[project.scripts\]|[project.urls]\nRepository = \"$1\"\nIssues = \"$1/issues\"\nChangelog = \"$1/blob/main/CHANGELOG.md\"\nSecurity = \"$1/security/policy\"\n\n&|" pyproject.toml
sed -i "s|^readme = |repository = \"$1\"\n&|" crates/hocket-core/Cargo.toml
