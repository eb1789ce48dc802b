import { describe, expect, test } from 'vitest'
import type { ProviderName } from '../../../src/domain/ids.ts'
import { loadDevices, parseDevices } from '../../../src/mapping/devices/device-table.ts'
import { messageOf, openMapperOf, payloadIn, truckSource } from '../../support/mapping-world.ts'

const parse = (text: string | Buffer) => parseDevices(Buffer.from(text))
const problemsOf = (text: string | Buffer) =>
  parse(text).problems.map(({ line, message }) => `${line}: ${message}`)

describe('a device table', () => {
  test('may only name privacy profiles that exist', () => {
    const text = Buffer.from('device,privacy\nA,night\nB,nihgt\nC,\n')
    const problems = (profiles?: readonly string[]) =>
      parseDevices(text, undefined, profiles).problems.map(({ line, message }) => `${line}: ${message}`)
    expect(problems(['night', 'day'])).toEqual([
      '3: names the privacy profile "nihgt"; known are night, day. Did you mean "night"?',
    ])
    expect(problems([])).toHaveLength(2)
    expect(problems()).toEqual([])
  })

  test('may only name time zones that exist', () => {
    const { table, problems } = parse('device,zone\nA,Europe/Berlin\nB,Europe/Berln\nC,\nD,utc\nE,CET\n')
    expect(problems.map(({ line, message }) => `${line}: ${message}`)).toEqual([
      '3: has the column "zone", which must be a time zone such as Europe/Paris, found "Europe/Berln". Did you mean "Europe/Berlin"?',
      '6: has the column "zone", which must be a time zone such as Europe/Paris, found "CET"',
    ])
    expect(table.find('A')).toEqual({ zone: 'Europe/Berlin' })
  })

  test('counts its models', () => {
    const { table } = parse('device,model\nA,FMC650\nB,FMC650\nC,\n')
    expect([...(table.models?.() ?? [])]).toEqual([['FMC650', 2]])
  })

  test('gives the columns of each device', () => {
    const { table, problems } = parse(
      'device,asset_id,asset_type,operator,carrier,provider,manufacturer,model\n' +
        '864636060329170,TRK-0007,TRACTOR,OP1,ACME,default,Teltonika,FMC650\n' +
        'bare,,,,,,,\n',
    )
    expect(problems).toEqual([])
    expect(table.size).toBe(2)
    expect(table.find('864636060329170')).toEqual({
      asset_id: 'TRK-0007',
      asset_type: 'TRACTOR',
      operator: 'OP1',
      carrier: 'ACME',
      provider: 'default',
      manufacturer: 'Teltonika',
      model: 'FMC650',
    })
    expect(table.find('bare')).toEqual({})
    expect(table.find('toString')).toBeUndefined()
  })

  test('is read as spreadsheets write it: BOM, CRLF, quotes, line ends in fields, comments, blanks', () => {
    const { table, problems } = parse(
      '\uFEFF# the depot\r\nmodel , device\r\n"FM, ""650""" , "T 1"\r\n\r\n"two\nlines",T2\r\n#T3,x\r\nÄ,T4',
    )
    expect(problems).toEqual([])
    expect(table.size).toBe(3)
    expect(table.find('T 1')).toEqual({ model: 'FM, "650"' })
    expect(table.find('T2')).toEqual({ model: 'two\nlines' })
    expect(table.find('T4')).toEqual({ model: 'Ä' })
  })

  test('reports every bad row with its line, all at once', () => {
    expect(
      problemsOf(
        'device,model\nT1,A\nT2\nT3,"A\nB"\n,C\nT1,D\nT4,a"b\nT5,"a"b\nT6,x,y\n# fine\nT7,Z\nT8,"never closed\nT9,Z\n',
      ),
    ).toEqual([
      '3: has 1 field, but the header has 2 columns',
      '6: has no device name',
      '7: repeats the device "T1" of line 2',
      '8: has a quote inside a field that does not start with one',
      '9: has text behind a closing quote',
      '10: has 3 fields, but the header has 2 columns',
      '13: has a quote that is never closed',
    ])
  })

  test.each([
    ['', '1: the table needs a header row with the column "device"'],
    ['asset_id\nA\n', '1: lacks the column "device"; the first row names the columns'],
    [
      'device,asset\nA,B\n',
      '1: unknown column "asset"; known are device, asset_id, asset_type, operator, carrier, provider, manufacturer, model, privacy, zone, muted_until. Did you mean "asset_id"?',
    ],
    ['device,model,model\nA,B,C\n', '1: has the column "model" twice'],
    ['device;model\nA;B\n', '1: separates its columns with ";"; use commas'],
    ['device,provider\nA,other\n', '2: names the provider "other"; known are default.'],
    [`device\n${'x'.repeat(257)}\n`, '2: has more than 256 characters in "device"'],
  ])('that reads %j is refused', (text, problem) => {
    expect(problemsOf(text)).toEqual([problem])
  })

  test.each(['8.67459E+14', '8,67459E+14', '3E+15'])('refuses %s, an IMEI that Excel has rounded', (name) => {
    const [problem] = problemsOf(`device\n"${name}"\n`)
    expect(problem).toMatch(/^2: names the device ".*", a number that a spreadsheet has rounded/)
    expect(problemsOf(`device\n"TRUCK ${name}"\n`)).toEqual([])
  })

  test('in another encoding than UTF-8 is refused with line and column', () => {
    const latin1 = Buffer.from('device,model\nT1,A\nT2,Büssing\n', 'latin1')
    expect(problemsOf(latin1)).toEqual([
      '3: The file is not UTF-8 at line 3, column 5: save it as UTF-8 ("CSV UTF-8" in a spreadsheet)',
    ])
    const wide = Buffer.from('\ufeffdevice\tmodel\n', 'utf16le')
    expect(problemsOf(wide)).toEqual([
      '1: The file is UTF-16: save it as UTF-8 ("CSV UTF-8" in a spreadsheet)',
    ])
  })

  test('may name only configured providers', () => {
    const providers = ['default', 'north'] as ProviderName[]
    const { table, problems } = parseDevices(Buffer.from('device,provider\nA,north\n'), providers)
    expect(problems).toEqual([])
    expect(table.find('A')?.provider).toBe('north')
  })

  test('with problems is a DEVICES_INVALID that lists them with file and line', async () => {
    const readFile = async () => Buffer.from('device\nA\nA\n\n"')
    const loading = loadDevices({ readFile }, { path: '/etc/devices.csv', providers: [] })
    await expect(loading).rejects.toMatchObject({
      code: 'DEVICES_INVALID',
      what: 'The device table /etc/devices.csv has 2 problems.',
      why:
        '/etc/devices.csv:3  repeats the device "A" of line 2\n' +
        '/etc/devices.csv:5  has a quote that is never closed',
    })
  })

  test('that cannot be read is a DEVICES_INVALID that says why', async () => {
    const readFile = () => Promise.reject(new Error('EACCES: permission denied'))
    await expect(loadDevices({ readFile }, { path: 'd.csv', providers: [] })).rejects.toMatchObject({
      code: 'DEVICES_INVALID',
      why: 'EACCES: permission denied.',
    })
  })
})

test('identifiers with quotes, control characters and lone surrogates give valid JSON', () => {
  const mapper = openMapperOf([truckSource({}, { device: { path: 'id' } })])
  for (const id of ['"', '\\', 'a\u0000b', 'a\nb', '\uD800', 'Ä', '😀', '</script>', 'a\u2028b']) {
    const payload = payloadIn(mapper.map(messageOf({ ts: 1_750_000_000_000, lat: 48.1, lon: 2.2, id })))
    const sent = JSON.parse(Buffer.from(payload.json).toString()) as { deviceIdentifier: { id: string } }
    expect(sent.deviceIdentifier.id).toBe(id)
  }
})
