#!/usr/bin/env node
// The `herd` command. Every Node from 12 on has to be able to read this file, because it is what tells somebody with
// an old one which Node is needed: old syntax only, and all else is imported once the version is known to do.
import { existsSync, readFileSync } from "fs";
import module from "module";

var manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
var needed = manifest.engines.node.replace(/^[^0-9]*/, "");

if (isOlder(process.versions.node, needed)) {
  console.error(
    "herd needs Node " +
      needed +
      " or newer, and this is Node " +
      process.versions.node +
      " (" +
      process.execPath +
      ").",
  );
  console.error("Next: install it from https://nodejs.org, or with your version manager, and run the command again.");
  process.exitCode = 2;
} else {
  start();
}

/** In a checkout the source runs as it is; the published package has it compiled. */
function start() {
  // Half of a short command's time is compiling it. The cache is Node's own, in the temporary folder.
  if (module.enableCompileCache) module.enableCompileCache();
  var source = new URL("./main.ts", import.meta.url);
  var compiled = new URL("../../dist/adapters/cli/main.js", import.meta.url);
  import((existsSync(source) ? source : compiled).href).then(function (main) {
    return main.main(process.argv.slice(2), manifest.version);
  });
}

/** Compares versions number by number, as many as `minimum` has. */
function isOlder(version, minimum) {
  var has = version.split(".");
  var wants = minimum.split(".");
  for (var i = 0; i < wants.length; i++) {
    if (Number(has[i]) !== Number(wants[i])) return Number(has[i]) < Number(wants[i]);
  }
  return false;
}
