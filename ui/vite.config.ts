import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import optimizeLocales from "@react-aria/optimize-locales-plugin";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

import { messagesPlugin } from "./messages-plugin.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = join(here, "..", "src", "tradewind", "api", "web");

/** Writes a compressed copy beside each text file, so that the server compresses nothing. */
function compressed(): Plugin {
  return {
    name: "tradewind-compressed",
    apply: "build",
    closeBundle() {
      for (const name of readdirSync(out, { recursive: true, encoding: "utf8" })) {
        if (!/\.(js|css|html|svg)$/.test(name)) continue;
        writeFileSync(join(out, `${name}.gz`), gzipSync(readFileSync(join(out, name)), { level: 9 }));
      }
    },
  };
}

/**
 * Puts boot.js and frame.css into index.html, and the styles of the bundle behind the first frame: the frame and the first requests wait
 * for no other file. The server allows the two texts by their hashes.
 */
function frameFirst(): Plugin {
  return {
    name: "tradewind-frame-first",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(html) {
        const text = (name: string): string => readFileSync(join(here, "public", name), "utf8");
        const late = html.match(/^ *<link rel="stylesheet" crossorigin .*\n/gm) ?? [];
        return late.reduce((left, one) => left.replace(one, ""), html)
          .replace('<link rel="stylesheet" href="/frame.css" />', () => `<style>${text("frame.css")}</style>`)
          .replace('<script src="/boot.js"></script>', () => `<script>${text("boot.js")}</script>`)
          .replace("  </body>", `${late.join("")}  </body>`);
      },
    },
  };
}

/** Is the module part of what the first file imports at once? */
function startsWithThePage(id: string, info: (id: string) => { isEntry: boolean; importers: readonly string[] } | null, seen = new Set<string>()): boolean {
  if (seen.has(id)) return false;
  seen.add(id);
  const module = info(id);
  return module !== null && (module.isEntry || module.importers.some((one) => startsWithThePage(one, info, seen)));
}

export default defineConfig({
  plugins: [
    { ...optimizeLocales.vite({ locales: ["en-US", "zh-CN", "ko-KR"] }), enforce: "pre" } as Plugin,
    messagesPlugin(join(here, "messages")),
    react(),
    frameFirst(),
    compressed(),
  ],
  build: {
    outDir: out,
    emptyOutDir: true,
    assetsDir: "static",
    assetsInlineLimit: 0,
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    // One file for all that every visit needs: forty small ones would wait for one another.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ debugName: "page", name: (id, graph) => (startsWithThePage(id, (one) => graph.getModuleInfo(one)) ? "page" : null) }] } },
    },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8080", "/auth": "http://127.0.0.1:8080" } },
});
