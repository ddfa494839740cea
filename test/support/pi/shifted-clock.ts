/** Loaded before a program (`--import`): its clock is ahead by what a file says, which a test changes. */
import { readFileSync } from "node:fs";

const file = process.env["SHIFTED_CLOCK"];
if (file === undefined) throw new Error("SHIFTED_CLOCK names no file");
const real = Date.now.bind(Date);
Date.now = () => real() + Number(readFileSync(file, "utf8"));
