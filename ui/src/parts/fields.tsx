// Fields of forms. Each shows its label, a hint, and an error of its own.
import { Check, ChevronDown, Minus, Search } from "lucide-react";
import { useId, type CSSProperties, type ReactNode } from "react";
import {
  Button as AriaButton, CheckboxButton, CheckboxField, ListBox, ListBoxItem, Popover, Select as AriaSelect, SelectValue, SwitchButton, SwitchField,
} from "react-aria-components";

import { buttonClass } from "./Button";
import styles from "./parts.module.css";

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
}

interface TextProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  type?: "text" | "password" | "number" | "email" | "url" | "date" | "datetime-local" | "time";
  placeholder?: string;
  required?: boolean;
  readOnly?: boolean;
  lines?: number;
  mono?: boolean;
  autoComplete?: string;
  autoFocus?: boolean;
  min?: number | string;
  max?: number | string;
  step?: number | string;
  name?: string;
  /** Values that the browser offers while the user types; others are allowed. */
  suggestions?: readonly string[];
  /** Enter in a field of one line; without it, Enter sends the form. */
  onEnter?: () => void;
}

export function TextField({ label, hint, error, value, onChange, type = "text", lines, mono, suggestions, onEnter, ...rest }: TextProps) {
  const id = useId();
  const common = {
    id, value, className: `${styles.input} ${mono ? "mono" : ""}`, "aria-invalid": Boolean(error), "aria-describedby": `${id}-more`, spellCheck: false,
    ...rest,
  };
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      {lines ? (
        <textarea rows={lines} {...common} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input
          type={type} {...common} {...(suggestions ? { list: `${id}-list` } : {})} onChange={(event) => onChange(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !onEnter) return;
            event.preventDefault();
            onEnter();
          }}
        />
      )}
      {suggestions && <datalist id={`${id}-list`}>{suggestions.map((one) => <option key={one} value={one} />)}</datalist>}
      <More id={`${id}-more`} hint={hint} error={error} />
    </div>
  );
}

export function More({ id, hint, error }: { id?: string; hint?: ReactNode; error?: string | undefined }) {
  if (error) return <span id={id} className={styles.wrong}>{error}</span>;
  return hint ? <span id={id} className={styles.hint}>{hint}</span> : null;
}

/** The field of a filter bar. `/` moves the focus to the field with `data-search`, and the arrow down moves it on to the list. */
export function SearchField({ label, value, onChange, width }: { label: string; value: string; onChange: (value: string) => void; width?: number }) {
  return (
    <label className={styles.search} {...(width ? { style: { "--wide": `${width}px` } as CSSProperties } : {})}>
      <span className="hidden">{label}</span>
      <Search size={14} aria-hidden />
      <input
        className={styles.input} type="search" value={value} placeholder={label} data-search spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown") return;
          event.preventDefault();
          document.querySelector<HTMLElement>("main [role=table], main [role=grid]")?.focus();
        }}
      />
    </label>
  );
}

export interface Choice<T extends string> {
  value: T;
  label: string;
  /** Shown before the label. */
  icon?: ReactNode;
  count?: number;
}

interface SelectProps<T extends string> {
  label: string;
  /** Shows the label above the button; otherwise only for screen readers. */
  labelled?: boolean;
  value: T;
  choices: readonly Choice<T>[];
  onChange: (value: T) => void;
  hint?: ReactNode;
  compact?: boolean;
}

export function Select<T extends string>({ label, labelled = false, value, choices, onChange, hint, compact }: SelectProps<T>) {
  return (
    <AriaSelect
      className={styles.field ?? ""} aria-label={label} value={value} onChange={(key) => onChange(key as T)}
    >
      {labelled && <span className={styles.label}>{label}</span>}
      <AriaButton className={`${buttonClass(compact ? { compact } : {})} ${styles.select}`} style={labelled ? { justifyContent: "space-between" } : undefined}>
        <SelectValue className="cut" />
        <ChevronDown size={14} aria-hidden />
      </AriaButton>
      <Popover className={styles.popover ?? ""} offset={4}>
        <ListBox items={choices.map((one) => ({ id: one.value, ...one }))}>
          {(one) => (
            <ListBoxItem id={one.value} textValue={one.label} className={styles.option ?? ""}>
              {one.icon}
              <span className="cut">{one.label}</span>
              {one.count !== undefined && <span className={`${styles.end} muted figures`}>{one.count}</span>}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
      <More hint={hint} />
    </AriaSelect>
  );
}

interface CheckProps {
  children?: ReactNode;
  label?: string;
  selected: boolean;
  indeterminate?: boolean;
  disabled?: boolean;
  onChange: (selected: boolean) => void;
}

export function Checkbox({ children, label, selected, indeterminate = false, disabled = false, onChange }: CheckProps) {
  return (
    <CheckboxField
      className={styles.checkField ?? ""} isSelected={selected} isIndeterminate={indeterminate} isDisabled={disabled} onChange={onChange}
      {...(label ? { "aria-label": label } : {})}
    >
      <CheckboxButton className={styles.check ?? ""}>
        <span className={styles.checkBox}>{indeterminate ? <Minus size={12} strokeWidth={3} /> : selected ? <Check size={12} strokeWidth={3} /> : null}</span>
        {children}
      </CheckboxButton>
    </CheckboxField>
  );
}

export function Switch({ children, label, selected, disabled = false, onChange }: Omit<CheckProps, "indeterminate">) {
  return (
    <SwitchField className={styles.checkField ?? ""} isSelected={selected} isDisabled={disabled} onChange={onChange} {...(label ? { "aria-label": label } : {})}>
      <SwitchButton className={styles.switch ?? ""}>
        <span className={styles.track} />
        {children}
      </SwitchButton>
    </SwitchField>
  );
}
