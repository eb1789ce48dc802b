import { describe, expect, test } from 'vitest'
import { configSchema, connectionsWithin, openFilesWarnings } from '../../src/config/config.ts'

function configOf({ limits = {}, delivery = {} }: { limits?: object; delivery?: object } = {}) {
  return configSchema.parse({
    ingest: { broker: { listeners: [{ url: 'mqtt://127.0.0.1:0' }], access: { anonymous: true }, limits } },
    sources: [
      {
        name: 'a',
        topic: 'a/{device}',
        map: { time: { path: 't', format: 'ms' }, latitude: { path: 'x' }, longitude: { path: 'y' } },
      },
    ],
    defaults: { carrier: 'ACME', operator: 'OP1', asset_type: 'TRACTOR' },
    spool: { path: '/spool' },
    delivery: { base_url: 'https://service.example', ...delivery },
    ops: {},
    log: {},
  })
}

describe('the limit of open files', () => {
  test('leaves connections of devices what the spool, delivery, ops, alerts and bridges do not need', () => {
    const config = configOf()
    // 150 own files, 204 of tables, 320 of ops, 8 of submissions.
    expect(connectionsWithin(config, 1024)).toBe(342)
    expect(connectionsWithin(configOf({ delivery: { max_in_flight: 54 } }), 1024)).toBe(242)
  })

  test.each([
    ['high', 65_536, 10_000],
    ['just enough', 11_478, 10_000],
    ['one less', 11_477, 9999],
    ['so low that nearly everything is reserved', 512, 64],
    ['unknown', Infinity, 10_000],
  ])('%s: %d files allow %d connections, and fewer than configured is a warning', (_, limit, connections) => {
    const config = configOf()
    expect(connectionsWithin(config, limit)).toBe(connections)
    const warning = { act: expect.stringContaining('Set LimitNOFILE=11478'), what: expect.any(String) }
    expect(openFilesWarnings(config, limit)).toEqual(connections === 10_000 ? [] : [warning])
  })

  test('is no warning where max_connections fits', () => {
    const config = configOf({ limits: { max_connections: 300 } })
    expect(connectionsWithin(config, 1024)).toBe(300)
    expect(openFilesWarnings(config, 1024)).toEqual([])
  })
})
