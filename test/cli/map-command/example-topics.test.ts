import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { loadPresetCases } from '../../../src/config/case-files.ts'
import { exampleTopics } from '../../../src/cli/map-command/example-topics.ts'
import { runCli } from '../../support/cli-world.ts'
import { loadPresetMapping } from '../../support/preset-mapping.ts'

const folder = new URL('../../../config/presets/', import.meta.url).pathname
const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const presets = (await readdir(folder))
  .filter((name) => name.endsWith('.yaml') && !name.endsWith('.cases.yaml'))
  .map((name) => name.slice(0, -'.yaml'.length))

async function topicsOf(preset: string, own: Readonly<Record<string, unknown>> = {}): Promise<string[]> {
  const { sources } = await loadPresetMapping(preset, deps, own)
  return sources[0] ? exampleTopics(sources[0]) : []
}

describe('map --preset without a topic', () => {
  test.each(presets)('%s maps a message of its cases', async (preset) => {
    const { cases } = await loadPresetCases(`${folder}${preset}.cases.yaml`, deps)
    const [topic = ''] = await topicsOf(preset)
    // Of values that are collected one by one, and of births: the message that a case has for this topic.
    const ends = [`/${topic.split('/').at(-1) ?? ''}`, '/Position/Latitude']
    const isOf = (one: { topic?: string | undefined }) =>
      ends.some((end) => one.topic?.endsWith(end) === true) || one.topic?.includes('/DBIRTH/') === true
    const steps = cases.cases.filter(({ payloads }) => payloads).flatMap((one) => one.messages ?? [one])
    const chosen = steps.find(isOf) ?? steps[0]
    const bytes = chosen?.hex === undefined ? (chosen?.message ?? '') : Buffer.from(chosen.hex, 'hex')
    const { status, stdout, stderr } = await runCli(['map', '--preset', preset], { stdin: bytes })
    expect([status, stderr]).toEqual([0, expect.stringContaining(`with the topic ${topic} of the preset.`)])
    expect(stdout).toMatch(/"part":|"payloads":\[\{/)
  })

  test('every topic that is named is read', async () => {
    for (const preset of presets) {
      const topics = await topicsOf(preset)
      expect(topics.length, preset).toBeGreaterThan(0)
      const lines = topics.map((topic) => JSON.stringify({ topic, message: '47.1' })).join('\n')
      const { stdout } = await runCli(['map', '--preset', preset, '--ndjson'], { stdin: lines })
      for (const sign of ['NO_SOURCE', 'excluded topic', 'not wanted', '"when: {'])
        expect(stdout, preset).not.toContain(sign)
    }
  })

  test.each([
    ['chirpstack', ['application/application/device/device/event/up']],
    ['flespi-state', ['flespi/state/gw/devices/device/telemetry/position']],
    [
      'sparkplug-b',
      [
        'spBv1.0/group/DBIRTH/node/device',
        'spBv1.0/group/DDATA/node/device',
        'spBv1.0/group/NBIRTH/node',
        'spBv1.0/group/NDATA/node',
      ],
    ],
    ['teltonika-json', ['teltonika/device/data']],
  ])('those of %s', async (preset, topics) => {
    expect(await topicsOf(preset)).toEqual(topics)
  })

  test.each([
    [{ when: 'topic.event in ["vp", "due"] && lat > 0' }, ['f/vp', 'f/due']],
    [{ when: 'topic.event != "vp"' }, ['f/event']],
    [{ exclude: ['f/event'] }, []],
    [{ topic: ['+/x/#', 'a/{b}/{c#}'] }, ['x/x', 'a/b/c']],
    [{ coalesce: { name: 'm.{event}', names: ['m.speed', 'm.lat', 'other'] } }, ['f/lat', 'f/speed']],
  ])('with %j', async (own, topics) => {
    const map = { time: { format: 'arrival' }, latitude: { path: 'lat' }, longitude: { path: 'lon' } }
    const source = { topic: 'f/{event}', device: '{clientid}', ...own, map }
    if ('coalesce' in own)
      Object.assign(source, { map: { time: { format: 'arrival' }, ...position('"m.lat"', '"m.speed"') } })
    expect(await topicsOf('simulator', { fix: {}, ...source })).toEqual(topics)
  })
})

function position(latitude: string, longitude: string) {
  return { latitude: { path: latitude }, longitude: { path: longitude } }
}
