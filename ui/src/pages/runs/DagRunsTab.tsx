// The runs of one DAG, in the DAG's page.
import { useParams } from "@tanstack/react-router";

import { RunFilters, RunTable } from "./RunTable";
import styles from "./runs.module.css";

export default function DagRunsTab() {
  const { dagId } = useParams({ strict: false });
  if (!dagId) return null;
  return (
    <div className={styles.tab}>
      <div className={styles.toolbar}>
        <RunFilters />
      </div>
      <RunTable dagId={dagId} />
    </div>
  );
}
