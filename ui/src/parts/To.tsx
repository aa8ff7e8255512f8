// A link to an address of the page that is made at run time: `/dags/a%2Fb?state=failed`. Ids in it have to be encoded (`enc`).
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { buttonClass, type ButtonLook } from "./Button";

interface Props {
  href: string;
  children: ReactNode;
  className?: string | undefined;
  title?: string | undefined;
  label?: string;
}

export function To({ href, children, className, title, label }: Props) {
  const navigate = useNavigate();
  return (
    <a
      href={href} className={className} title={title} aria-label={label}
      onClick={(event) => {
        if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        void navigate({ href });
      }}
    >
      {children}
    </a>
  );
}

/** `To` that looks like a button. */
export function ToButton({ look, compact, icon, ...link }: Omit<Props, "className"> & ButtonLook) {
  return <To {...link} className={buttonClass({ ...(look ? { look } : {}), ...(compact ? { compact } : {}), ...(icon ? { icon } : {}) })} />;
}
