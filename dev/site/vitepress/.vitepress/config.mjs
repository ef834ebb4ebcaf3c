import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";

// dev/site writes it: the sections, each page with its title and its address.
const sections = JSON.parse(readFileSync(new URL("./navigation.json", import.meta.url), "utf8"));

// slugify names the anchor of a heading as GitHub does, so that a link serves in both places.
const slugify = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");

export default defineConfig({
  title: "Skein",
  description: "Event-sourced threads of AI agents on NATS JetStream",
  lang: "en",
  outDir: "./dist",
  srcExclude: ["public/**"],
  markdown: { anchor: { slugify } },
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    nav: sections.map(({ text, items }) => ({ text, link: items[0].link })),
    sidebar: sections.map((section) => ({ ...section, collapsed: section.text !== "Start" })),
    outline: [2, 3],
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: "https://github.com/skein-threads/skein" }],
    notFound: { title: "There is no such page", quote: "It may have moved: search for its subject, or begin at the start.", linkText: "To the start" },
    footer: { message: 'Apache 2.0. For models: <a href="/llms.txt" target="_self">llms.txt</a>, <a href="/llms-full.txt" target="_self">llms-full.txt</a>' },
  },
});
