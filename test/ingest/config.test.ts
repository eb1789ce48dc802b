// The section `ingest`: the rows are in config.cases.yaml.

import { hostname } from 'node:os'
import type { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { anyBridgeWarnings, ingestOptions, ingestSchema } from '../../src/ingest/config.ts'
import { rowsBeside } from '../support/case-rows.ts'
import { createAuthority } from '../support/certificates.ts'

type Section = { broker?: object; bridge?: object; rabbit?: object; bridges?: object[] }

const authority = createAuthority()
const own = authority.issue()
const pem = {
  '<own>': own,
  '<certificate>': own.cert,
  '<key>': own.key,
  '<another key>': authority.issue().key,
  '<authority>': authority.ca,
  '<revocations>': authority.revoke([]),
  '<this machine>': hostname().toLowerCase(),
}

const rows = JSON.parse(JSON.stringify(rowsBeside(import.meta.filename)), (_key, value: unknown) =>
  typeof value === 'string' && value in pem ? pem[value as keyof typeof pem] : value,
) as {
  refused: [what: string, section: Section, problems: string[]][]
  refused_listeners: [listener: object, problem: string][]
  beyond_loopback: string[]
  refused_bridges: [fields: object, problem: string][]
  refused_rabbits: [fields: object, problem: string][]
  client_ids: [other: object, problems: string[]][]
  read: [section: Section, options: object][]
  topics: [fields: object, topics: string[]][]
  warnings: [section: Section, warnings: string[]][]
}

const anonymous = { anonymous: true }
const bridgeBase = { name: 'depot', url: 'mqtt://10.0.0.1', topics: ['a/#'], client_id: 'gw' }
const rabbitBase = {
  name: 'rabbit',
  url: 'amqp://127.0.0.1:5672',
  queue: { prefix: 'fleet' },
  bind: { keys: ['t.#'] },
}

function sectionOf({ broker, bridge, rabbit, bridges = [] }: Section): object {
  const all = [
    ...bridges,
    ...(bridge === undefined ? [] : [{ ...bridgeBase, ...bridge }]),
    ...(rabbit === undefined ? [] : [{ ...rabbitBase, ...rabbit }]),
  ]
  const listeners = all.length > 0 ? { listeners: [] } : {}
  return { broker: { access: anonymous, ...listeners, ...broker }, bridges: all }
}

/** Of a bridge, the problems of the kind that it is: that of its scheme, with the fewest problems. */
function issuesOf(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const isOther = (one: z.core.$ZodIssue) => one.code === 'custom' && one.params?.['otherKind'] === true
  const kinds = issue.errors.filter((issues) => !issues.some(isOther))
  const [best = []] = kinds.toSorted((one, other) => one.length - other.length)
  return best.map((one) => ({ ...one, path: [...issue.path, ...one.path] }))
}

function problemsOf(section: Section): string[] {
  const { error } = ingestSchema.safeParse(sectionOf(section))
  return (error?.issues ?? []).flatMap(issuesOf).map(({ path, message }) => `${path.join('.')} ${message}`)
}

/** `/a.c/` is a pattern, another text the beginning. */
const like = (problem: string): unknown => {
  const [, pattern] = /^\/(.+)\/$/.exec(problem) ?? []
  return expect.stringMatching(
    pattern === undefined ? `^${problem.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}` : pattern,
  )
}

const optionsOf = (section: Section) => ingestOptions(ingestSchema.parse(sectionOf(section)))

describe('the section ingest', () => {
  test.each(rows.refused)('is refused with %s', (_what, section, problems) => {
    expect(problemsOf(section)).toEqual(problems.map(like))
  })

  test.each(rows.refused_listeners)('is refused with the listener %j', (listener, problem) => {
    const wanted = problem.startsWith('/') ? problem : `broker.listeners.0.${problem}`
    expect(problemsOf({ broker: { listeners: [listener] } })).toEqual([like(wanted)])
  })

  test.each(rows.beyond_loopback)(
    'is refused with anonymous clients at %s, unless that is confirmed',
    (url) => {
      const confirmed = { anonymous: true, anonymous_beyond_loopback: true }
      const problems = (listener: object, access: object) =>
        problemsOf({ broker: { listeners: [listener], access } })
      expect(problems({ url }, anonymous)).toEqual([
        like('broker.access.anonymous must not be true, because other machines reach'),
      ])
      expect(problems({ url }, confirmed)).toEqual([])
      expect(problems({ url, access: anonymous }, confirmed)).toEqual([
        like('broker.listeners.0.access.anonymous must not be true'),
      ])
    },
  )

  test.each(rows.read)('with %j has %j', (section, options) => {
    const found = JSON.stringify(optionsOf(section), (_key, value: unknown) =>
      value instanceof Set ? [...value] : value,
    )
    expect(JSON.parse(found)).toMatchObject(options)
  })
})

describe('a bridge', () => {
  test.each(rows.refused_bridges)('is refused with %j', (bridge, problem) => {
    expect(problemsOf({ bridge })).toEqual([like(`bridges.0.${problem}`)])
  })

  test.each(rows.refused_rabbits)('to RabbitMQ is refused with %j', (rabbit, problem) => {
    expect(problemsOf({ rabbit })[0]).toEqual(like(`bridges.0.${problem}`))
  })

  test.each(rows.client_ids)(
    'has client ids of its own, also where a connection makes one: %j',
    (other, problems) => {
      const shared = { ...bridgeBase, share_group: 'g', connections: 2 }
      expect(problemsOf({ bridges: [shared, { ...bridgeBase, name: 'other', ...other }] })).toEqual(problems)
    },
  )

  test.each(rows.topics)('to RabbitMQ with %j has the topics %j', (rabbit, topics) => {
    expect(ingestSchema.parse(sectionOf({ rabbit })).bridges[0]!.topics).toEqual(topics)
  })

  test.each(rows.warnings)('with %j warns of what may be lost or read by others: %j', (section, warnings) => {
    const [bridge] = ingestSchema.parse(sectionOf(section)).bridges
    const found = anyBridgeWarnings(bridge!, (host) => host === '127.0.0.1').map(({ what }) => what)
    expect(found).toEqual(warnings.map((words) => expect.stringContaining(words) as string))
  })
})
