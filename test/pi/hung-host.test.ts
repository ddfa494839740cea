import { expect, test } from "vitest";
import { client, serve } from "../support/pi/client.ts";
import { piPlace, runHerd } from "../support/pi/place.ts";

test("a host that does not answer is not said to be away: its process and how to end it are named", async () => {
  const place = piPlace();
  const host = serve(place, ["--leave-after", "60"]);
  await (await client(place, { role: "observer" })).close(1_000);
  const pid = host.child.pid as number;
  process.kill(pid, "SIGSTOP");
  const says = (text: string) => {
    expect(text).toContain(`Process ${pid} has the herd in ${place.herd} open and does not answer`);
    expect(text).toMatch(
      new RegExp(`end it with kill ${pid} or, where that does nothing, with kill -9 ${pid} and run `),
    );
  };
  try {
    const run = (...args: string[]) => runHerd(place, args);
    const [stop, status, list, doctor] = await Promise.all([
      run("stop"),
      run("status"),
      run("list"),
      run("doctor", "--pi"),
    ]);
    for (const each of [stop, status, list]) {
      expect(each).toMatchObject({ code: 1, stdout: "" });
      says(each.stderr);
    }
    expect(doctor.code).toBe(4);
    for (const name of ["store", "host"]) {
      const [line = ""] = doctor.stdout.match(new RegExp(`^WRONG +${name} .*\\n.*$`, "m")) ?? [];
      says(line);
    }
  } finally {
    process.kill(pid, "SIGCONT");
  }
  // What went before was of no consequence.
  expect((await runHerd(place, ["stop"])).stdout).toMatch(new RegExp(`^Process ${pid} has ended`));
  expect(await host.ended).toMatchObject({ code: 0 });
}, 90_000);
