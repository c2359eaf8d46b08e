// Builds the page: one file without slots filled, which Python fills. `node build.mjs [FILE]`.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const here = new URL(".", import.meta.url);
const path = (name) => new URL(name, here).pathname;
const options = { bundle: true, minify: true, write: false, target: "es2022", charset: "utf8", legalComments: "none" };
const text = async (entry, more) => {
  const made = await build({ ...options, entryPoints: [path(entry)], format: "iife", ...more });
  // A script must not hold what ends it.
  return made.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
};

const worker = await text("src/worker.ts", {});
const script = await text("src/main.ts", { define: { WORKER_SOURCE: JSON.stringify(worker) } });
const style = (await build({ ...options, entryPoints: [path("src/style.css")] })).outputFiles[0].text.trim();
const shell = await readFile(path("src/shell.html"), "utf8");
const page = shell.replace("/*STYLE*/", () => style).replace("/*SCRIPT*/", () => script);
await writeFile(process.argv[2] ?? path("../python/hocket/explorer/page.html"), page);
