import { describe, expect, test } from "vitest";
import { fileSystemOf, readMachine } from "./machine.ts";

const MOUNTS = `21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:5 / /tmp rw,nosuid - tmpfs tmpfs rw
23 21 0:6 / /tmp/deep\\040er rw master:1 - xfs /dev/vdb rw
24 21 0:7 / /srv rw - btrfs /dev/vdc rw
25 24 0:8 / /srv rw - zfs pool rw
`;

describe("what a machine is", () => {
  test.each([
    ["/home/ada", "ext4"],
    ["/tmp", "tmpfs"],
    ["/tmp/a", "tmpfs"],
    ["/tmpfoo", "ext4"],
    ["/tmp/deep er/a", "xfs"],
    ["/srv/a", "zfs"],
  ])("tells the file system of %s", (path, type) => {
    expect(fileSystemOf(path, MOUNTS)).toBe(type);
  });

  test("tells no file system where no mount holds the path", () => {
    expect(fileSystemOf("/srv/a", "22 21 0:5 / /tmp rw - tmpfs tmpfs rw\n")).toBeNull();
  });

  test("is told without names of builds, people or folders", async () => {
    const machine = await readMachine([1, 2]);
    expect(machine).toEqual({
      processor: machine.processor,
      processors: expect.toSatisfy((count: number) => count >= 1),
      memory: expect.toSatisfy((bytes: number) => bytes > 2 ** 20),
      system: expect.stringMatching(/^\w+ \d[\d.]*, \w+$/),
      node: process.version,
      fileSystem: machine.fileSystem,
      loads: [1, 2],
    });
    expect(`${machine.processor} ${machine.fileSystem}`).not.toMatch(/\/| {2}/);
  });
});
