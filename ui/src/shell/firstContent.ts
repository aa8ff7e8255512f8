// What a visit comes for is drawn first: the bar and the actions of the header come when the browser has nothing else to do, in the space that
// is kept for them. The cells of a grid are drawn earlier by that time.
import { useEffect, useState } from "react";

/** The bar does not wait longer, milliseconds. */
const WAIT_MAX = 300;

let idle = false;

/** Whether the first content of this visit has been drawn. */
export function useFirstContent(): boolean {
  const [now, setNow] = useState(idle);
  useEffect(() => {
    if (now) return undefined;
    function done(): void {
      idle = true;
      setNow(true);
    }
    // Some browsers cannot say when they are idle.
    if (!("requestIdleCallback" in globalThis)) {
      const timer = setTimeout(done);
      return () => clearTimeout(timer);
    }
    const request = requestIdleCallback(done, { timeout: WAIT_MAX });
    return () => cancelIdleCallback(request);
  }, [now]);
  return now;
}
