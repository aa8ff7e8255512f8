// The runs of all DAGs.
import { useText } from "../../i18n";
import { Page } from "../../parts/Page";
import { RunFilters, RunTable } from "./RunTable";

export default function RunsPage() {
  const t = useText();
  return (
    <Page title={t("runs.title")} toolbar={<RunFilters ofAllDags />} fill>
      <RunTable dagId="~" />
    </Page>
  );
}
