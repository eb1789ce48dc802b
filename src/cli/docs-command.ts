// docs-command.ts: `docs`: writes the generated parts of the documentation, or reports which are stale.
//
//   config/reference.md, config/gateway.schema.json      from the schema of the config
//   config/status.schema.json, config/alert.schema.json  from the schemas of /status and of alerts
//   pages, between <!-- generated: NAME --> and <!-- end -->    NAME is one of `tables` below

import { Command, Option } from 'commander'
import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { codeOf, errorCodes } from '../std/gateway-error.ts'
import { alertSchema } from '../alerts/alerts.ts'
import { configSchema, fieldRows, referenceText, schemaText } from '../config/config.ts'
import { eventTable, type EventName } from '../domain/event.ts'
import { functionRows } from '../mapping/mapping.ts'
import {
  conditionCatalogue,
  eventMeaning,
  answerShape,
  listOf,
  metricCatalogue,
  requestCodes,
  routes,
  statusSchema,
  durationHistograms,
} from '../ops/ops.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'

/** The folder of package.json. */
const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

export function docsCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('docs')
    .description('write the generated parts of the documentation')
    .option('--check', 'write nothing; exit 1 when something is stale')

    .addOption(new Option('--folder <path>', 'folder of the project').default(projectFolder, 'this checkout'))
    .action(async ({ check, folder }: { check?: boolean; folder: string }) => {
      const stale: string[] = []
      for (const [name, make] of Object.entries(documents)) {
        const path = resolve(folder, name)
        const present = await readFile(path, 'utf8').catch((error: unknown) => {
          if (codeOf(error) !== 'ENOENT') throw error
          return null
        })
        const text = make(present)
        if (text === null || text === present) continue
        stale.push(name)
        if (!check) await writeFile(path, text)
      }
      for (const name of stale)
        io.stdout.write(check ? `${name} is stale: run npm run docs\n` : `${name} written\n`)
      done(check && stale.length > 0 ? 1 : 0)
    })
}

/** Pages with generated parts; the rest of them is written by hand. */
const pages = [
  'README.md',
  'docs/alerts.md',
  'docs/errors.md',
  'docs/events-and-conditions.md',
  'docs/http.md',
  'docs/mapping.md',
  'docs/metrics.md',
  'docs/status.md',
]

/** By path: from the present text to the right one; null where there is nothing to write. */
const documents: Record<string, (present: string | null) => string | null> = {
  'config/reference.md': () => referenceText(configSchema),
  'config/gateway.schema.json': () => schemaText(configSchema),
  'config/status.schema.json': () => {
    const title = 'Status of the telemetry gateway, version 1'
    return `${JSON.stringify({ title, ...answerShape(statusSchema) }, null, 2)}\n`
  },
  'config/alert.schema.json': () => {
    const title = 'Alert of the telemetry gateway, version 1'
    return `${JSON.stringify({ title, ...answerShape(alertSchema) }, null, 2)}\n`
  },
  ...Object.fromEntries(pages.map((page) => [page, withTables])),
}

const tables: Record<string, () => string> = {
  codes: () =>
    table(
      ['code', 'meaning'],
      Object.entries(errorCodes).map(([code, meaning]) => [quoted(code), meaning]),
    ),
  requests: () =>
    table(
      ['code', 'meaning'],
      Object.entries(requestCodes).map(([code, meaning]) => [quoted(code), meaning]),
    ),
  reads: () => pathTable('GET'),
  changes: () => pathTable('POST'),
  conditions: () =>
    table(
      ['condition', 'severity', 'meaning', 'what to do', 'raised by'],
      Object.entries(conditionCatalogue).map(([code, { severity, meaning, act }]) => [
        quoted(code),
        severity,
        meaning,
        act,
        raisedBy(code),
      ]),
    ),
  events: () =>
    table(
      ['event', 'level', 'meaning', 'what to do', 'conditions', 'fields'],
      Object.entries(eventTable).map(([name, { level, act, raises = {} }]) => [
        quoted(name),
        typeof level === 'string' ? level : level.oneOf.join(', '),
        eventMeaning(name as EventName),
        act ?? (Object.keys(raises).length > 0 ? 'See the condition.' : 'Nothing.'),
        Object.keys(raises)
          .map((code) => `raises ${quoted(code)}`)
          .join(', '),
        loggedFields(name)
          .map(([field]) => quoted(field))
          .join(', '),
      ]),
    ),
  functions: () =>
    table(
      ['function', 'gives', 'for example'],
      functionRows.map(({ name, parameters, doc, example }) => [
        quoted(`${name}(${parameters})`),
        doc,
        quoted(example),
      ]),
    ),
  fields: () => table(['field', 'meaning'], eventFieldRows()),
  status: () =>
    table(
      ['field', 'type', 'meaning'],
      fieldRows(statusSchema).map(([path, type, meaning]) => [quoted(path), type, meaning]),
    ),
  alert: () =>
    table(
      ['field', 'type', 'meaning'],
      fieldRows(alertSchema).map(([path, type, meaning]) => [quoted(path), type, meaning]),
    ),
  metrics: () =>
    table(
      ['metric', 'type', 'labels', 'meaning'],
      [...metricCatalogue, ...durationHistograms.map((one) => ({ ...one, type: 'histogram' }))].map(
        ({ name, type, labels, help }) => [quoted(name), type, labels.join(', '), help],
      ),
    ),
}

function pathTable(method: string): string {
  const documented = routes.filter(({ path }) => !path.startsWith('/page/assets/'))
  const { paths } = listOf(documented.filter((route) => route.method === method))
  return table(
    ['path', 'answer', 'parameters'],
    paths.map(({ path, summary, parameters }) => [
      quoted(path),
      summary,
      parameters
        .filter((one) => one.in === 'query')
        .map(({ name, required, description, rule }) => {
          const is = [...(required ? ['required'] : []), ...(/^a (text|time) /.test(rule) ? [] : [rule])]
          return `${quoted(name)}: ${description}${is.length > 0 ? ` (${is.join('; ')})` : ''}`
        })
        .join('<br>'),
    ]),
  )
}

function raisedBy(code: string): string {
  const events = Object.entries(eventTable).filter(([, { raises = {} }]) => code in raises)
  // A state has no event: it is looked at once a second.
  return events.length === 0 ? 'its state' : events.map(([name]) => quoted(name)).join(', ')
}

/** Fields that the log writes as several, by name, or by event and name. */
const compound: Record<string, Record<string, string>> = {
  fault: {
    code: 'code of the error',
    what: 'what happened',
    why: 'cause, as far as known',
    act: 'what to do',
  },
  'submission_ended.outcome': {
    outcome: 'result of the submission',
    status: 'HTTP status of the answer',
    requestId: 'requestId that the service sent; null without one',
    message: 'answer of the service',
    reason: 'stable code of the reason',
    accepted: 'number of payloads accepted',
    failed: 'number of payloads failed',
  },
}

/** Events that a meaning names. A meaning of more is the usual one, and stands without them. */
const namedEventsMax = 3

/** Name and meaning of each field of an event, as the log has them. */
function loggedFields(event: string): [string, string][] {
  return Object.entries(eventTable[event as EventName].fields).flatMap(([name, { meaning }]) =>
    Object.entries(compound[`${event}.${name}`] ?? compound[name] ?? { [name]: meaning }),
  )
}

/** By name; of a name with several meanings, each says of which events it is. */
function eventFieldRows(): string[][] {
  const meanings = new Map<string, Map<string, string[]>>()
  for (const event of Object.keys(eventTable))
    for (const [name, meaning] of loggedFields(event)) {
      const events = meanings.get(name) ?? new Map<string, string[]>()
      meanings.set(name, events.set(meaning, [...(events.get(meaning) ?? []), event]))
    }
  return [...meanings]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, texts]) => [quoted(name), [...texts].sort(byEvents).map(withEvents).join('<br>')])
}

type MeaningOfEvents = [meaning: string, events: readonly string[]]

function byEvents([, a]: MeaningOfEvents, [, b]: MeaningOfEvents): number {
  return b.length - a.length
}

function withEvents([meaning, events]: MeaningOfEvents, _index: number, all: readonly unknown[]): string {
  if (all.length === 1 || events.length > namedEventsMax) return meaning
  return `${events.map(quoted).join(', ')}: ${meaning}`
}

function quoted(name: string): string {
  return `\`${name}\``
}

function withTables(page: string | null): string | null {
  if (page === null) return null
  return page.replace(
    /(<!-- generated: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (all: string, head: string, name: string, tail: string) => {
      const make = Object.hasOwn(tables, name) ? tables[name] : undefined
      return make ? `${head}\n${make()}\n${tail}` : all
    },
  )
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('')
}
