// The document of the ops port, against the answers of a running daemon with something in every list.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { openApiOf } from '../../../../src/ops/http/http-routing/openapi.ts'
import { routes } from '../../../../src/ops/http/route-table.ts'
import { newFolder } from '../../../support/folders.ts'
import { get } from '../../../support/ops-world.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../../../support/pipeline-world.ts'

type Schema = Record<string, unknown>
type Content = Record<string, { schema: Schema }>
type Response = { $ref?: string; description?: string; content?: Content }
type Parameter = { name: string; in: string; required: boolean; description: string; schema: Schema }
type Operation = {
  operationId: string
  summary: string
  parameters: Parameter[]
  requestBody?: { content: Content; required: boolean }
  responses: Record<string, Response>
}
type Document = {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; responses: Record<string, Response> }
}

const documented = openApiOf(routes, '1.0.0') as Document
const operations = Object.entries(documented.paths).flatMap(([path, of]) =>
  Object.entries(of).map(([method, operation]) => ({ path, method, ...operation })),
)

/** Checks by the document, with its references. */
function validator(document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
  ajv.addSchema({ $id: 'document', ...document })
  return (schema: Schema, value: unknown): string[] => {
    const text = JSON.stringify(schema).replaceAll('"#/', '"document#/')
    const validate = ajv.compile(JSON.parse(text) as Schema)
    validate(value)
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message ?? ''}`)
  }
}

describe('the OpenAPI document', () => {
  test('has every path and method of the server, and no other', () => {
    const served = routes.flatMap(({ path, method }) =>
      method === 'GET' ? [`get ${path}`, `head ${path}`] : [`post ${path}`],
    )
    expect(operations.map(({ path, method }) => `${method} ${path}`).toSorted()).toEqual(served.toSorted())
    expect(served).toContain('post /control/dead-letters/import-plan')
  })

  test('is well formed: ids, parameters, answers, schemas and references', () => {
    expect(documented.openapi).toBe('3.1.0')
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const check = validator(documented)
    for (const { path, method, operationId, parameters, responses, requestBody } of operations) {
      expect(operationId).toMatch(/^(get|head|post)[A-Z]\w*$/)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect(parameters.filter((one) => one.in === 'path').map(({ name }) => name)).toEqual(inPath)
      expect(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size).toBe(parameters.length)
      for (const { description, schema, in: place, required } of parameters) {
        expect(description).toMatch(/\.$/)
        expect(place === 'query' || required).toBe(true)
        check(schema, null)
      }
      expect(Object.keys(responses)).toContain('default')
      for (const [status, { $ref, description = '', content = {} }] of Object.entries(responses)) {
        expect(status).toMatch(/^([1-5]\d\d|default)$/)
        const isSaid = $ref === '#/components/responses/Problem' || description.endsWith('.')
        expect([path, status, isSaid]).toEqual([path, status, true])
        for (const { schema } of Object.values(content)) check(schema, null)
      }
      const needsBody = /\/(edit|import|import-plan|login|logout|change)$/.test(path)
      expect([path, requestBody?.required === true]).toEqual([path, method === 'post' && needsBody])
    }
    check(
      documented.components.responses['Problem']?.content?.['application/problem+json; charset=utf-8']
        ?.schema ?? {},
      {},
    )
  })

  test('says what is checked: a value that it allows is accepted, another one is not', () => {
    const limit = documented.paths['/devices']?.['get']?.parameters.find(({ name }) => name === 'limit')
    expect(limit?.schema).toEqual({ type: 'integer', minimum: 1, maximum: 1000, default: 100 })
    const state = documented.paths['/devices']?.['get']?.parameters.find(({ name }) => name === 'state')
    expect(state?.schema['enum']).toContain('never_sent')
    const show = documented.paths['/control/dead-letters/show']?.['post']?.parameters
    expect(show).toMatchObject([{ name: 'id', required: true }])
  })
})

/** A daemon with something in every list, and a check of its answers. */
async function world() {
  const pipeline = await filledPipeline()
  const document = JSON.parse((await ask('/openapi.json')).text) as Document
  const check = validator(document)
  return { ask, expectAsDocumented }

  function ask(path: string, init?: RequestInit) {
    const { ops, control } = pipeline.gateway.addresses
    return get(init?.method === 'POST' ? control : ops, path, init)
  }

  async function expectAsDocumented(path: string, method = 'GET', init: RequestInit = {}) {
    const { status, headers, text } = await ask(path, { method, ...init })
    const [bare = ''] = path.split('?')
    const known = Object.hasOwn(document.paths, bare) ? bare : '/devices/{key}'
    const response = document.paths[known]?.[method.toLowerCase()]?.responses[String(status)]
    expect([path, response !== undefined]).toEqual([path, true])
    const isProblem = response?.$ref !== undefined
    const content = isProblem ? document.components.responses['Problem']?.content : response?.content
    const type = headers.get('content-type') ?? ''
    // Only the list of paths has two types: a page for browsers.
    expect([path, Object.keys(content ?? {})]).toEqual([
      path,
      path === '/' && !isProblem ? [type, 'text/html; charset=utf-8'] : [type],
    ])
    const schema = content?.[type]?.schema ?? {}
    const value: unknown = type.includes('json;') ? JSON.parse(text) : text
    expect([path, ...check(schema, value)]).toEqual([path])
    // Without the room for later versions: a member without a description is not documented.
    const route = routes.find((one) => one.path === known && one.method === method)
    const strict = isProblem ? null : route?.answers[status]?.schema
    if (strict) expect([path, strict.safeParse(value).error?.issues ?? []]).toEqual([path, []])
    return { status, value: value as Record<string, unknown> }
  }
}

describe('a running daemon', () => {
  test('answers as the document says, with something in every list, and makes changes so', async () => {
    const { ask, expectAsDocumented } = await world()
    const lists: [path: string, member: string][] = [
      ['/', 'paths'],
      ['/status', 'providers'],
      ['/devices', 'devices'],
      ['/dead-letters', 'deadLetters'],
      ['/dead-letters', 'groups'],
      ['/ledger', 'entries'],
      ['/quarantine', 'groups'],
      ['/quarantine?device=unlisted', 'messages'],
      ['/batches', 'batches'],
      ['/batches', 'groups'],
      ['/audit', 'changes'],
    ]
    for (const [path, member] of lists) {
      const { status, value } = await expectAsDocumented(path)
      expect([path, status]).toEqual([path, 200])
      expect([path, (value[member] as unknown[]).length > 0]).toEqual([path, true])
    }
    for (const path of ['/healthz', '/readyz', '/verdict', '/metrics', '/openapi.json'])
      await expectAsDocumented(path)
    const { value: device } = await expectAsDocumented('/devices/truck-1?messages=1&explain=1')
    expect((device['lastMessages'] as unknown[]).length).toBeGreaterThan(0)
    await expectAsDocumented('/devices/nobody')
    await expectAsDocumented('/devices?limit=0')

    const { value: list } = await expectAsDocumented('/dead-letters')
    const [{ id = '' } = {}] = list['deadLetters'] as { id?: string }[]
    const { value: batches } = await expectAsDocumented('/batches')
    const [{ batchId = '' } = {}] = batches['batches'] as { batchId?: string }[]
    const exported = await ask('/control/dead-letters/export?all=1', { method: 'POST' })
    expect(exported.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    for (const path of [
      `dead-letters/show?id=${id}`,
      'dead-letters/show?id=none',
      'dead-letters/remap?dryRun=1',
      'dead-letters/requeue?all=1&dryRun=1',
      'dead-letters/purge?all=1',
      'quarantine/drop?device=unlisted',
      'quarantine/release?device=unlisted',
      `batches/show?id=${batchId}`,
      'batches/show?id=none',
      'batches/retry?all=1&dryRun=1',
      'batches/split?all=1',
      'batches/mark-delivered?all=1',
      'devices/forget?device=truck-2&ledger=1',
      'devices/forget?device=truck-2&signal=X',
      'spool/verify',
      'probe',
      'reload',
      'reload?now=1',
    ])
      await expectAsDocumented(`/control/${path}`, 'POST')
    const plan = { body: exported.text }
    const { value } = await expectAsDocumented('/control/dead-letters/import-plan', 'POST', plan)
    const token = String(value['import'])
    await expectAsDocumented(`/control/dead-letters/import-check?import=${token}`, 'POST')
    await expectAsDocumented(`/control/dead-letters/import?import=${token}&dryRun=1`, 'POST', plan)
  })
})

/** Delivered payloads, a batch that is held because of 409, a dead letter, and a message in quarantine. */
async function filledPipeline(): Promise<Pipeline> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device\ntruck-1\ntruck-2\n')
  const pipeline = await startPipeline({
    folder,
    sandbox: { repeat: 'conflict', faults: { count: 1, after_commit: { cut: 1 } } },
    config: (baseUrl) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
devices: { file: devices.csv, unknown: quarantine }
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { max_payloads: 2, linger: 20ms }, timeout: 1s }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
  })
  const device = await pipeline.device('truck-1')
  for (const n of [1, 2, 3, 4])
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(n), messageId: n })
  device.publish({ topic: topicOf('truck-1'), payload: 'not JSON', messageId: 5 })
  device.publish({ topic: topicOf('unlisted'), payload: messageOf(6), messageId: 6 })
  await device.acked(6)
  const { control } = pipeline.gateway.addresses
  await get(control, '/control/dead-letters/remap', { method: 'POST' })
  const conditions = () => pipeline.status().conditions.map(({ code }) => code)
  await pipeline.until(() => conditions().includes('BATCHES_HELD') && pipeline.status().totals.delivered >= 2)
  return pipeline
}
