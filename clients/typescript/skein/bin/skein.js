#!/usr/bin/env node
// Runs the binary of the package for this platform, as if it was called itself.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "skein.exe" : "skein";

function binary() {
  try {
    return createRequire(import.meta.url).resolve(`@skein-threads/skein-${platform}/bin/${name}`);
  } catch {
    console.error(`skein: the package @skein-threads/skein-${platform} is not installed: install without --omit=optional, or, if there is none for ${platform}, build Skein from its source`);
    process.exit(1);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`skein: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
