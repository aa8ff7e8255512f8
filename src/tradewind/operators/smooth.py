"""An operator that plays a song."""

from __future__ import annotations

from typing import Any

from tradewind.sdk.operator import BaseOperator


class SmoothOperator(BaseOperator):
    """Writes a link to Sade's "Smooth Operator" into the log, as Airflow's does."""

    ui_color = "#e8f7e4"
    yt_link: str = "https://www.youtube.com/watch?v=4TYv2PhG89A"

    def execute(self, context: Any) -> None:
        self.log.info("Enjoy Sade - Smooth Operator: %s", self.yt_link)
