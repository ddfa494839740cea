import { expect, test } from "vitest";
import { commandsIn, pasted } from "../support/pasted.ts";
import { leftBehind, Root, serve } from "../support/pi/client.ts";
import { piPlace, runHerd, until } from "../support/pi/place.ts";
import { task } from "../support/pi/session.ts";

const asking = task('call ask_owner {"question":"Which colour?"}', "say over");

test("after herd stop every command says that nothing is lost and what goes on with the work", async () => {
  const place = piPlace();
  serve(place);
  const root = await Root.of(place);
  for (const label of ["one", "two", "three"]) {
    await root.assign(label, asking);
    await until(async () => (await root.worker(label))?.state === "blocked", `the question of ${label}`);
  }
  expect((await runHerd(place, ["stop"])).stdout).toMatch(
    /^Process \d+ has ended\. Questions, results .* are kept\. A Pi session is open: it starts the process again/,
  );

  const starts = (text: string) => {
    expect(text).toMatch(/No background process runs/);
    expect(commandsIn(text).map((command) => pasted(command).slice(2))).toContainEqual(["serve"]);
  };
  const stored = (await runHerd(place, ["reply", "one", "red"])).stdout;
  expect(stored).toContain('Stored: "one" goes on with it once its Pi session is open again.');
  starts(stored);
  const { stdout: listed } = await runHerd(place, ["list"]);
  expect(listed).toMatch(/^ {2}one +at rest\b/m);
  expect(listed).toMatch(/^ {2}two +blocked +asks: Which colour\?$/m);
  expect(listed).toContain("nothing is lost");
  starts(listed);
  expect(await runHerd(place, ["steer", "one", "Hurry"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Stored: "one" reads it once its Pi session is open again.'),
    stderr: "",
  });
  // What may still run is not given up by somebody who cannot see that.
  const refused = await runHerd(place, ["close", "three"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/Next: open its Pi session, or run node \S+ serve in a shell, /);

  // And it is so.
  const host = serve(place);
  const again = await Root.of(place);
  await until(async () => (await again.worker("one"))?.state === "settling", "the result");
  expect((await again.worker("two"))?.state).toBe("blocked");
  for (const label of ["one", "two", "three"])
    expect(await again.subagent({ action: "close", label })).toMatchObject({ ok: true });
  await again.connection.close(0);
  expect((await runHerd(place, ["stop"])).stdout).toMatch(
    /are kept\. Workers go on when their Pi session is open again\.$/m,
  );
  await host.ended;
  expect(leftBehind(place)).toEqual([]);
}, 60_000);
