import { describe, expect, it } from "vitest";

import { lastLine, sourceLine, tracebackLines } from "./traceback";

const TRACE = `Traceback (most recent call last):
  File "/home/dags/team/broken.py", line 7, in <module>
    BashOperator(task_id="a", bash_comand="echo")
    ^^^^^^^^^^^^
  File "/lib/operators/base.py", line 99, in __init__
    raise UnknownArgument(name)
UnknownArgument: no argument 'bash_comand'
`;

describe("tracebackLines", () => {
  it("marks the lines of the file itself with their source", () => {
    const own = tracebackLines(TRACE, "team/broken.py").filter((one) => one.own).map((one) => one.text.trim());
    expect(own).toEqual(['File "/home/dags/team/broken.py", line 7, in <module>', 'BashOperator(task_id="a", bash_comand="echo")', "^^^^^^^^^^^^"]);
  });
  it("does not take another file whose name only ends alike", () => {
    expect(tracebackLines(TRACE, "roken.py").some((one) => one.own)).toBe(false);
  });
});

describe("sourceLine", () => {
  it("is the last line of the file itself", () => {
    expect(sourceLine(tracebackLines(TRACE, "team/broken.py"))).toBe('BashOperator(task_id="a", bash_comand="echo")');
  });
  it("is empty if the traceback does not show the file", () => {
    expect(sourceLine(tracebackLines(TRACE, "other.py"))).toBe("");
  });
});

describe("lastLine", () => {
  it("is the sentence of the error", () => {
    expect(lastLine(TRACE)).toBe("UnknownArgument: no argument 'bash_comand'");
  });
});
