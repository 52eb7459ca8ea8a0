"""What a build computes from the repository's address, which pyproject.toml has once."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Metadata(MetadataHookInterface):
    """The hook that `[tool.hatch.metadata.hooks.custom]` configures."""

    def update(self, metadata: dict) -> None:
        """Add the project's URLs, and the README with links that also work away from its folder."""
        address = self.config["repository"]
        version = metadata["version"]
        tree = "main" if "dev" in version else f"v{version}"
        metadata["urls"] = {
            "Homepage": address,
            "Documentation": f"{address}/tree/{tree}/docs",
            "Source": address,
            "Issues": f"{address}/issues",
            "Changelog": f"{address}/blob/{tree}/CHANGELOG.md",
        }

        def absolute(link: re.Match[str]) -> str:
            return f"{link[0]}{address}/{'raw' if link['image'] else 'blob'}/{tree}/"

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(?P<image>!?)\[[^\]]*\]\((?!https?:|#)", absolute, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
