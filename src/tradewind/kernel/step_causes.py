"""Why a task instance got its state: the sentences of the journal that need no arguments, made once."""

from __future__ import annotations

from tradewind.model.phrases import english, phrase

DEPENDENCIES_MET = english(phrase("cause_met"))
NOTHING_TO_DO = english(phrase("cause_nothing_to_do"))
ONLY_WAITS = english(phrase("cause_only_waits"))
TRIGGER_RULE = english(phrase("cause_trigger_rule"))
SLOT_FREE = english(phrase("cause_slot_free"))
STARTED = english(phrase("cause_started"))
REPORTED_SUCCESS = english(phrase("cause_success"))
SKIPPED_ITSELF = english(phrase("cause_skipped_itself"))
RESCHEDULED = english(phrase("cause_rescheduled"))
TASK_FAILED = english(phrase("cause_failed"))
ATTEMPT_LOST = english(phrase("cause_lost"))
WAITS_WITHOUT_PROCESS = english(phrase("cause_waits"))
WAIT_OVER = english(phrase("cause_wait_over"))
STOPPED_TO_CLEAR = english(phrase("cause_stopped"))
NO_LIST = english(phrase("cause_no_list"))
LIST_EMPTY = english(phrase("cause_list_empty"))
TASK_GONE = english(phrase("gone"))
TASK_BACK = english(phrase("cause_task_back"))
TASK_CHANGED = english(phrase("cause_task_changed"))
