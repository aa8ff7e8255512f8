// The dialogs of the actions on runs and tasks. Each lists what it changes before its button works.
export { BackfillDialog } from "./BackfillDialog";
export { ClearDialog, MarkDialog } from "./ChangeDialog";
export { TriggerDialog } from "./TriggerDialog";

export type { DialogProps, SelectionProps } from "./props";
