// page-assets.ts: the files of the page: style, scripts, icon. Nothing comes from another host.
//
// The build compiles browser/ and puts it and the style beside this file. Run from source, the types are
// stripped from a script when it is first asked for. A file is read once.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { z } from 'zod'
import { text } from '../http/http-routing/parameters.ts'
import { route, type Route } from '../http/http-routing/route.ts'

const here = import.meta.dirname
const isSource = import.meta.filename.endsWith('.ts')
const javascript = 'text/javascript; charset=utf-8'
const css = 'text/css; charset=utf-8'

const assets: Readonly<Record<string, { contentType: string; read: () => string }>> = {
  'page.css': { contentType: css, read: () => readFileSync(join(here, 'page.css'), 'utf8') },
  'browser.js': { contentType: javascript, read: () => script('browser') },
  'live-regions.js': { contentType: javascript, read: () => script('live-regions') },
  'tap-list.js': { contentType: javascript, read: () => script('tap-list') },
  'icon.svg': { contentType: 'image/svg+xml', read: () => icon },
}

const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1f5f8b"/>' +
  '<path d="M2 9h3l2-5 3 8 2-3h2" fill="none" stroke="#fff" stroke-width="1.5"/></svg>'

const kept = new Map<string, string>()

export const assetRoutes: readonly Route[] = Object.entries(assets).map(([name, { contentType }]) =>
  route({
    method: 'GET',
    path: `/page/assets/${name}`,
    summary: 'A file of the page.',
    right: 'open',
    atOnce: true,
    parameters: z.strictObject({ v: text('Changes with the files, so that browsers read them again.') }),
    answers: { 200: { means: 'The file.', contentType } },
    answer: () => ({
      status: 200,
      contentType,
      body: assetText(name),
      headers: { 'cache-control': 'public, max-age=86400' },
    }),
  }),
)

let digest: string | null = null

/** Changes when a file changes. */
export function assetsVersion(): string {
  digest ??= digestOf(Object.keys(assets).map(assetText))
  return digest
}

function digestOf(texts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const one of texts) hash.update(one)
  return hash.digest('hex').slice(0, 12)
}

function assetText(name: string): string {
  const read = kept.get(name) ?? assets[name]?.read() ?? ''
  kept.set(name, read)
  return read
}

function script(name: string): string {
  const path = join(here, 'browser', name)
  if (!isSource) return readFileSync(`${path}.js`, 'utf8')
  // It warns on standard error that it is experimental.
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(readFileSync(`${path}.ts`, 'utf8'))
  } finally {
    process.emitWarning = emitWarning
  }
}
