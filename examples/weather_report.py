"""A page and a plot for each month of the weather warehouse.

    wait_for_days ─▶ collect ─▶ plot ─▶ render

`wait_for_days` is one sensor for all days of the month: `execution_date_fn` returns their dates, and one request to the scheduler
checks all of them. With `mode="reschedule"` the sensor uses no process and no slot between two pokes. A day counts as done
when its run has ended. A failed day has a bad row that was set aside, and the page lists it.

`plot` needs matplotlib (`pip install 'tradewind[plots]'`). The task imports it, so the DAG file can be loaded without it. If it is
missing, the page has no picture and a note instead.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import weather_data as weather

from tradewind import DAG, Param, task
from tradewind.sensors.external_task import ExternalTaskSensor

log = logging.getLogger(__name__)

NO_PLOT = "matplotlib is not installed, so there is no plot. Get it with: pip install 'tradewind[plots]' — then clear this run."

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Weather of {{ month }}</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
  table { border-collapse: collapse } td, th { padding: .2rem .8rem; text-align: right } img { max-width: 100% }
  .note { background: #fff4d6; padding: .6rem 1rem }
</style>
<h1>Seattle, {{ month }}</h1>
{% if summary %}
<p>{{ summary.days }} days; {{ "%.1f"|format(summary.precipitation) }} mm of precipitation;
between {{ summary.temp_min }} and {{ summary.temp_max }} °C; wind {{ "%.1f"|format(summary.wind) }} m/s on average.</p>
{% else %}
<p class="note">The warehouse has no day of this month.</p>
{% endif %}
{% if picture %}<p><img src="{{ picture }}" alt="Temperatures and precipitation by day"></p>
{% else %}<p class="note">{{ no_plot }}</p>{% endif %}
{% if rejected %}
<h2>Set aside</h2>
<ul>{% for row in rejected %}<li>{{ row.problem }}</li>{% endfor %}</ul>
{% endif %}
<h2>Days</h2>
<table>
<tr><th>day<th>mm<th>min °C<th>max °C<th>wind<th>weather</tr>
{% for d in days %}<tr><td>{{ d.day }}<td>{{ d.precipitation }}<td>{{ d.temp_min }}<td>{{ d.temp_max }}<td>{{ d.wind }}
<td>{{ d.weather }}</tr>
{% endfor %}</table>
</html>
"""


def days_of_month(logical_date: datetime) -> list[datetime]:
    """Every day of the month in which the run's date lies."""
    day = logical_date.replace(day=1)
    found = []
    while day.month == logical_date.month:
        found.append(day)
        day += timedelta(days=1)
    return found


def draw(days: list[dict[str, Any]], month: str, path: Path) -> None:
    """Draw temperatures and precipitation into a PNG file.

    Raises:
        ImportError: matplotlib is not installed.
    """
    os.environ.setdefault("MPLCONFIGDIR", str(weather.home() / "cache" / "matplotlib"))
    from matplotlib.figure import Figure

    numbers = [int(day["day"][-2:]) for day in days]
    figure = Figure(figsize=(8, 4), layout="constrained")
    temperature = figure.add_subplot()
    rain = temperature.twinx()
    rain.bar(numbers, [day["precipitation"] for day in days], color="#9ecae1", label="mm")
    lows, highs = [day["temp_min"] for day in days], [day["temp_max"] for day in days]
    temperature.fill_between(numbers, lows, highs, color="#fdae6b", alpha=0.6)
    temperature.set_zorder(rain.get_zorder() + 1)
    temperature.patch.set_visible(False)
    temperature.set(title=f"Seattle, {month}", xlabel="day", ylabel="°C")
    rain.set_ylabel("precipitation, mm")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


@task(multiple_outputs=False)  # one XCom with the whole dictionary instead of one XCom per key
def collect(ds: str, params: dict[str, str]) -> dict[str, Any]:
    """Read the month from the warehouse."""
    return weather.month_facts(weather.warehouse_folder(params["warehouse"]), ds[:7])


@task
def plot(facts: dict[str, Any], params: dict[str, str]) -> str | None:
    """Draw the month. Returns the picture's file name; None where nothing could be drawn."""
    path = weather.reports_folder(params["reports"]) / f"{facts['month']}.png"
    try:
        draw(facts["days"], facts["month"], path)
    except ImportError:
        log.warning(NO_PLOT)
        return None
    return path.name


@task
def render(facts: dict[str, Any], picture: str | None, params: dict[str, str]) -> str:
    """Write the page. Returns its path."""
    from jinja2 import Environment

    path = weather.reports_folder(params["reports"]) / f"{facts['month']}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    page = Environment(autoescape=True).from_string(PAGE).render(facts, picture=picture, no_plot=NO_PLOT)
    path.write_text(page, encoding="utf-8")
    return str(path)


with DAG(
    "weather_report",
    description="A page and a plot for each month of the weather warehouse",
    schedule="@monthly",
    start_date=datetime(2012, 1, 1),
    end_date=datetime(2015, 12, 1),
    catchup=True,
    max_active_runs=4,
    params={
        "warehouse": Param("", type="string", description="The warehouse's folder; empty: $TRADEWIND_HOME/warehouse."),
        "reports": Param("", type="string", description="Where pages go; empty: $TRADEWIND_HOME/reports."),
    },
    tags=["example", "weather"],
    doc_md=__doc__,
):
    days_are_in = ExternalTaskSensor(
        task_id="wait_for_days",
        external_dag_id="weather_warehouse",
        execution_date_fn=days_of_month,
        allowed_states=["success", "failed"],
        mode="reschedule",
        poke_interval=timedelta(seconds=10),
        timeout=timedelta(days=7),
    )
    facts = collect()
    days_are_in >> facts
    render(facts, plot(facts))
