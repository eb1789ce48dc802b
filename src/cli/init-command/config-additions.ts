// config-additions.ts: adds a source or a provider to a config that a person may have edited. Comments and
// the order of everything stay: a new entry of a list is inserted as text below its last one. Where there is
// no such list yet, the tree of the YAML text gets it, which keeps comments and may indent them anew.
//
// The new text is checked as a file beside the config before it replaces it.

import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMap, isNode, isSeq, parseDocument, stringify, type Document, type YAMLSeq } from 'yaml'
import { defaultProvider } from '../../domain/ids.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { readRegular } from '../../std/file-system/regular-file.ts'
import { replaceFile } from '../../std/file-system/replace-file.ts'

export type NewSource = {
  name: string
  preset: string | null
  topic: string | null
  model: string | null
  provider: string | null
}

export type NewProvider = {
  name: string
  providerKey: string | null
  /** Null: those of the section `delivery`. */
  service: string | null
  keys: string | null
}

/** What was added, as YAML. */
type Addition = { section: string; text: string }

type Edit = { readonly path: string; text: string; readonly additions: Addition[] }

/** Rejects with USAGE, OUTPUT_UNWRITABLE, or as `check` does: then the config is as it was. */
export async function addToConfig(
  path: string,
  { source, provider }: { source: NewSource | null; provider: NewProvider | null },
  check: (candidate: string) => Promise<void>,
): Promise<readonly Addition[]> {
  const additions: Addition[] = []
  await replaceFile(path, { noun: 'config', mode: null }, async () => {
    const edit: Edit = { path, text: await readRegular(path), additions }
    if (provider !== null) addProvider(edit, provider)
    if (source !== null) addSource(edit, source)
    const { text } = edit
    // Relative paths start at the folder of the config.
    const candidate = join(dirname(path), `.init-${randomBytes(6).toString('hex')}.yaml`)
    try {
      await writeFile(candidate, text, { mode: 0o600, flag: 'wx' })
      await check(candidate)
    } finally {
      await rm(candidate, { force: true })
    }
    return text
  })
  return additions
}

function parsed({ text, path }: Pick<Edit, 'text' | 'path'>): Document {
  const document = parseDocument(text, { merge: true })
  if (document.errors.length === 0 && isMap(document.contents)) return document
  throw new GatewayError('CONFIG_INVALID', {
    what: `Nothing can be added to ${path}.`,
    why: 'It is no valid YAML, or has no sections.',
    act: `Run \`check --config ${path}\`, and correct what it says. Nothing was written.`,
  })
}

function addSource(edit: Edit, source: NewSource): void {
  const { name, preset, topic, model, provider } = source
  refuseTwice(edit, ['sources'], name, 'source')
  add(edit, ['sources'], {
    name,
    ...(preset === null ? {} : { preset }),
    ...(topic === null ? {} : { topic }),
    ...(preset === null ? { identity: 'device', map: exampleMap } : {}),
    ...(model === null ? {} : { model }),
    ...(provider === null ? {} : { provider }),
  })
}

/** The JSON of the example, as in a new config. */
const exampleMap = {
  time: { path: 'ts', format: 'ms' },
  latitude: { path: 'gps.lat' },
  longitude: { path: 'gps.lon' },
  speed: { path: 'gps.speed', unit: 'km/h' },
  heading: { path: 'gps.heading' },
  in_motion: { path: 'gps.moving' },
  signals: [
    { type: 'OBD_LIFETIME_ODOMETER', path: 'odometer.value', unit: 'km' },
    { type: 'OBD_TOTAL_ENGINE_TIME', path: 'engineHours.value', unit: 'h', part: 'ENGINE' },
  ],
}

/** The first list keeps the provider of before: sources without `provider` are delivered as they were. */
function addProvider(edit: Edit, { name, providerKey, service, keys }: NewProvider): void {
  const list = ['delivery', 'providers']
  refuseTwice(edit, list, name, 'provider')
  const document = parsed(edit)
  if (!document.hasIn(list) && name !== defaultProvider) {
    const key = document.getIn(['delivery', 'provider_key'])
    // With a list, each entry has its own.
    if (document.deleteIn(['delivery', 'provider_key'])) edit.text = textOf(document)
    const before = { name: defaultProvider, ...(typeof key === 'string' ? { provider_key: key } : {}) }
    add(edit, list, before)
  }
  const entry = {
    name,
    ...(service === null ? {} : { base_url: service }),
    ...(providerKey === null ? {} : { provider_key: providerKey }),
    ...(keys === null ? {} : { credentials: { source: 'file', path: keys } }),
  }
  add(edit, list, entry)
}

function refuseTwice(edit: Edit, list: string[], name: string, noun: string): void {
  const entries = parsed(edit).getIn(list)
  const isThere = isSeq(entries) && entries.items.some((entry) => isMap(entry) && entry.get('name') === name)
  if (!isThere) return
  throw new GatewayError('USAGE', {
    what: `The ${noun} "${name}" exists already.`,
    why: `\`${list.join('.')}\` of the config has an entry with this name.`,
    act: `Give another name, or change the entry with an editor. Nothing was written.`,
  })
}

function add(edit: Edit, list: string[], entry: object): void {
  const document = parsed(edit)
  const entries = document.getIn(list)
  const text = stringify([entry], { lineWidth: 0 })
  edit.additions.push({ section: list.join('.'), text })
  if (isSeq(entries) && entries.flow !== true && entries.items.length > 0) {
    edit.text = insertedBelow(edit.text, entries, text)
    return
  }
  // An empty list is written [], which has no lines for an entry.
  if (isSeq(entries)) {
    if (entries.items.length === 0) entries.flow = false
    document.addIn(list, document.createNode(entry))
  } else document.setIn(list, document.createNode([entry]))
  edit.text = textOf(document)
}

/** Below the last entry of a list, with the indentation of the first one. */
function insertedBelow(text: string, { items }: YAMLSeq, added: string): string {
  const rangeOf = (item: unknown) => (isNode(item) ? (item.range ?? [0, 0]) : [0, 0])
  const [start = 0] = rangeOf(items[0])
  const [, end = 0] = rangeOf(items.at(-1))
  const firstLine = text.slice(text.lastIndexOf('\n', start - 1) + 1, start)
  const indent = /^ */.exec(firstLine)?.[0] ?? ''
  // The value of a block may end behind its line feed.
  const newline = text.indexOf('\n', text[end - 1] === '\n' ? end - 1 : end)
  const at = newline === -1 ? text.length : newline + 1
  const before = newline === -1 ? `${text}\n` : text.slice(0, at)
  return `${before}${added.replaceAll(/^(?=.)/gm, indent)}${text.slice(at)}`
}

/** No line is folded: what a person wrote stays as it is. */
function textOf(document: Document): string {
  return document.toString({ lineWidth: 0 })
}
