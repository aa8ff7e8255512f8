export interface DialogProps {
  dagId: string;
  onClose: () => void;
}

/** The tasks that a clear or a mark changes: tasks of a run, or the whole run if `tasks` is empty. */
export interface SelectionProps extends DialogProps {
  runId: string;
  /** Task ids, or (task id, map index) for one mapped instance. */
  tasks: readonly (string | readonly [string, number])[];
}
