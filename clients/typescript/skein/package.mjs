// Writes the npm packages of the command: one for each platform with its binary, and skein, which needs
// them.
//
//   node package.mjs VERSION FOLDER linux-x64=BINARY darwin-arm64=BINARY ...
//
// A platform is what Node calls process.platform and process.arch.
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [version, folder, ...platforms] = process.argv.slice(2);
const form = /^((linux|darwin|win32)-(x64|arm64))=(.+)$/;
const wrong = platforms.find((p) => !form.test(p) || !existsSync(form.exec(p)[4]));
if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version ?? "") || !folder || platforms.length === 0 || wrong) {
  console.error(wrong ? `${wrong}: use PLATFORM=BINARY, such as linux-x64=bin/skein, of a binary that exists` : "use: node package.mjs VERSION FOLDER PLATFORM=BINARY ...");
  process.exit(2);
}

const here = dirname(fileURLToPath(import.meta.url));
const about = {
  version,
  license: "Apache-2.0",
  repository: { type: "git", url: "git+https://github.com/skein-threads/skein.git", directory: "clients/typescript/skein" },
};

function write(name, manifest) {
  const to = join(folder, name);
  mkdirSync(join(to, "bin"), { recursive: true });
  writeFileSync(join(to, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  copyFileSync(join(here, "..", "..", "..", "LICENSE"), join(to, "LICENSE"));
  return to;
}

const needed = {};
for (const [, platform, os, cpu, binary] of platforms.map((p) => form.exec(p))) {
  const name = `@skein-threads/skein-${platform}`;
  const to = write(`skein-${platform}`, { name, description: `The binary of skein for ${platform}`, ...about, os: [os], cpu: [cpu], files: ["bin"], preferUnplugged: true });
  const placed = join(to, "bin", os === "win32" ? "skein.exe" : "skein");
  copyFileSync(binary, placed);
  chmodSync(placed, 0o755);
  needed[name] = version;
}
const to = write("skein", {
  name: "skein",
  description: "Event-sourced threads of AI agents on NATS JetStream: npx skein serve",
  ...about,
  type: "module",
  bin: { skein: "bin/skein.js" },
  engines: { node: ">=20" },
  files: ["bin", "README.md"],
  optionalDependencies: needed,
});
cpSync(join(here, "bin"), join(to, "bin"), { recursive: true });
copyFileSync(join(here, "README.md"), join(to, "README.md"));
