// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
//     node bundle.mjs FOLDER     writes the files of the page there
//     node bundle.mjs --check    whether that can be done: the installed packages are those of the lock
//
// The bundle holds only packages whose licence is on the list below; their texts become page-licenses.txt.
import { copyFile, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const allowed = ["MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"];

function end(message) {
  console.error(`${message}; run \`npm ci --ignore-scripts\` in tools/server/page`);
  process.exit(1);
}

async function json(path) {
  try {
    return JSON.parse(await readFile(join(here, path), "utf8"));
  } catch {
    return null;
  }
}

// Optional packages are those of other systems. What only tests use may be absent.
async function check() {
  const lock = await json("package-lock.json");
  for (const [path, wanted] of Object.entries(lock.packages)) {
    if (!path || wanted.optional || (wanted.dev && !path.endsWith("/esbuild"))) continue;
    const found = await json(`${path}/package.json`);
    if (!found) end(`${path} is not installed`);
    if (found.version !== wanted.version) end(`${path} is ${found.version}, the lock has ${wanted.version}`);
  }
  try {
    const esbuild = await import("esbuild");
    await esbuild.transform(""); // its program may be that of another system
    return esbuild;
  } catch (error) {
    return end(`esbuild does not start (${error.message})`);
  }
}

// "(MPL-2.0 OR Apache-2.0)" offers a choice.
function licence(name, expression) {
  const offered = expression.replace(/[()]/g, "").split(" OR ");
  const chosen = offered.find((one) => allowed.includes(one));
  if (!chosen) throw new Error(`${name}: the licence ${expression} is not one of ${allowed.join(", ")}`);
  return chosen;
}

async function licences(inputs) {
  const inside = inputs.map((path) => path.match(/^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//));
  const names = [...new Set(inside.filter(Boolean).map((match) => match[1]))].sort();
  let list = "Packages in the page of tenon serve, with their licences.\n\n";
  let texts = "";
  for (const name of names) {
    const about = await json(`node_modules/${name}/package.json`);
    const chosen = licence(name, about.license);
    const files = await readdir(join(here, "node_modules", name));
    const file = files.find((one) => /^licen[cs]e/i.test(one));
    if (!file) throw new Error(`${name} has no text of its licence`);
    const text = await readFile(join(here, "node_modules", name, file), "utf8");
    list += `${name} ${about.version}: ${chosen}\n`;
    texts += `\n${"-".repeat(80)}\n${name} ${about.version}: ${chosen}\n\n${text.trim()}\n`;
  }
  return list + texts;
}

async function bundle(esbuild, out) {
  const common = { absWorkingDir: here, bundle: true, minify: true, charset: "utf8", legalComments: "none" };
  const made = await esbuild.build({
    ...common,
    entryPoints: ["src/main.ts"],
    outfile: join(out, "page.js"),
    format: "esm",
    target: ["chrome111", "firefox113", "safari16.4"],
    metafile: true,
  });
  await esbuild.build({ ...common, entryPoints: ["page.css"], outfile: join(out, "page.css") });
  await copyFile(join(here, "index.html"), join(out, "index.html"));
  await copyFile(join(here, "plain/page.svg"), join(out, "page.svg"));
  await writeFile(join(out, "page-licenses.txt"), await licences(Object.keys(made.metafile.inputs)));
}

const esbuild = await check();
if (process.argv[2] !== "--check") await bundle(esbuild, resolve(process.argv[2]));
