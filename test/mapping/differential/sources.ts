// sources.ts: the sources whose messages are mapped in both ways, with templates of their messages.

import type { World } from '../../support/mapping-world.ts'
import type { Trial } from './trial.ts'
import { presetTrial } from './preset-trials.ts'
import { sharedTrial } from './shared-trial.ts'
import { counterOf, decimals, latitude, longitude, printed, timeOf } from './template-values.ts'
import { Spelled, type Template } from './hostile-json.ts'

const truckMap = {
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

const truckTemplate: Trial['template'] = (clock) => ({
  device: () => 'truck-1',
  seq: (random) => String(random.below(1e9)),
  ts: (random) => timeOf(clock, random),
  gps: {
    // Both near zero now and then: that is no position.
    lat: printed((random) => (clock.now % 40 === 0 ? 0.00002 : latitude(random)), 6),
    lon: (random) => (clock.now % 40 === 0 ? -0.00003 : longitude(random)),
    alt: (random) => decimals(random, 0, 900, 1),
    speed: (random) => decimals(random, 0, 90, 1),
    heading: (random) => (random.chance(0.02) ? 360 : decimals(random, 0, 360, 1)),
    moving: (random) => random.chance(0.5),
    satellites: (random) => random.below(15),
  },
  odometer: { value: (random) => counterOf(clock, random, 184_223.412, 60), unit: () => 'km' },
  engineHours: { value: (random) => counterOf(clock, random, 4033.271, 0.8), unit: () => 'h' },
  fuel: { level: (random) => decimals(random, 0, 100, 1) },
  fw: () => 'x'.repeat(30),
})

const table = `device,provider,asset_id,asset_type,operator,carrier,model,privacy
truck-1,,TRUCK 1,TRACTOR,OP1,ACME,,
truck-2,,"TRUCK ""2""",TRACTOR,,,FMB640,
truck-\u00fc,,T\u00dc,,,,,
truck-4,,T4,,,,,quiet
356307042441013,,T5,,,,,
`

const world: World = {
  table,
  devices: { unknown: 'accept' },
  defaults: { carrier: 'ACME', operator: 'OP1', asset_type: 'TRACTOR' },
  clocks: { future_max: '5m', on_future: 'quarantine' },
  privacy: { profiles: { quiet: { hide: ['speed'], round: 3 } } },
  clockOffsetMs: 0,
}

const topics = [
  ...Array.from({ length: 6 }, (_, index) => `telemetry/v1/truck-${index}`),
  'telemetry/v1/truck-\u00fc',
  `telemetry/v1/${'long-'.repeat(45)}`,
  'telemetry/v1/a"b',
  'elsewhere/truck-1',
]

/** The example config, and what `init` writes, which has an identity and a device table. */
const trucks: Trial = {
  name: 'trucks',
  source: { name: 'trucks', topic: 'telemetry/v1/{device}', map: truckMap },
  world: { ...world, table: 'device\n' },
  topics,
  template: truckTemplate,
}

const initial: Trial = {
  name: 'initial',
  source: { name: 'vehicles', topic: 'telemetry/v1/{device}', identity: 'device', map: truckMap },
  world: {
    ...world,
    devices: { unknown: 'quarantine' },
    plausibility: { speed: { max: 40, action: 'flag' } },
  },
  topics: [...topics.slice(1, 4), ...topics.slice(1, 4), ...topics],
  template: truckTemplate,
}

/** Nearly all that the fast path can do. */
const whole: Trial = {
  name: 'whole',
  source: {
    name: 'whole',
    topic: 'fleet/{group}/up',
    device: { path: ['imei', 'info.imei'] },
    families: { heavy: ['FMB6*'] },
    origins: ['gnss'],
    map: {
      time: { path: ['time', 'pos.t'], format: 'iso', missing: 'arrival' },
      latitude: { path: ['pos.lat', 'lat'], unit: '1e-7deg' },
      longitude: { path: ['pos.lon', 'lon'], unit: '1e-7deg' },
      speed: { path: 'pos.v', unit: 'm/s' },
      heading: { path: 'pos.c', scale: 0.1 },
      in_motion: { path: 'pos.moving', from: 'speed', above: 5, below: 2 },
      signals: [
        { type: 'OBD_LIFETIME_ODOMETER', path: 'can.odo', unit: 'm' },
        { type: 'OBD_LIFETIME_ODOMETER', path: 'odo', unit: 'm', origin: 'gnss' },
        { type: 'OBD_TOTAL_ENGINE_TIME', path: 'can.hours', unit: 's', part: 'ENGINE' },
        { type: 'FUEL_LEVEL', path: 'can.fuel', value_unit: 'PERCENT' },
        { type: 'COOLANT_TEMPERATURE', path: 'can.temp', value_unit: 'CELSIUS', offset: -40 },
        { type: 'AXLE_LOAD', path: 'can.load', families: ['heavy'], scale: 0.5 },
        { type: 'RAW', path: 'raw' },
      ],
      fields: {
        'gps.altitude': { path: 'pos.alt', type: 'number' },
        'gps.hdop': { path: 'pos.hdop', type: 'number', scale: 0.1 },
        driver: { path: 'driver', type: 'text' },
        doors: { path: 'doors', type: 'boolean' },
        voltage: { path: 'mv', type: 'number', scale: 0.001, quantity: 'voltage' },
      },
    },
  },
  world: { ...world, devices: { unknown: 'quarantine' }, plausibility: { odometer: { jumps: 'flag' } } },
  topics: ['fleet/a/up', 'fleet/b/up'],
  template: (clock) => ({
    imei: (random) =>
      random.pick([
        '356307042441013',
        'truck-1',
        'truck-2',
        'truck-4',
        'stranger',
        356307042441013,
        'truck-\u00fc',
      ]),
    time: (random) => new Date(timeOf(clock, random)).toISOString(),
    pos: {
      t: () => null,
      lat: (random) => Math.round(latitude(random) * 1e7),
      lon: (random) => Math.round(longitude(random) * 1e7),
      v: (random) => (random.chance(0.4) ? decimals(random, 0, 2, 2) : decimals(random, 0, 30, 2)),
      c: (random) => random.below(3601),
      alt: (random) => random.below(1000) - 50,
      hdop: (random) => random.below(40),
      moving: (random) => random.pick([true, false, 0, 1, null, '']),
    },
    can: {
      odo: (random) => Math.round(counterOf(clock, random, 386_814_875, 60_000)),
      hours: (random) => Math.round(counterOf(clock, random, 9_000_000, 3000)),
      fuel: (random) => random.below(101),
      temp: (random) => random.below(130),
      load: (random) => random.below(9000),
    },
    raw: (random) => random.pick([0, 1, -2.5, 1e-3, 12.5, new Spelled('-99999999999999999')]),
    driver: (random) => random.pick(['Anna', 'B. C.', '', 7, true, null, 'M\u00fcller']),
    doors: (random) => random.pick([true, false, 1, 0, null]),
    mv: (random) => 11_000 + random.below(4000),
  }),
}

/** Without a time of its own: the window key is made of the message. */
const untimed: Trial = {
  name: 'untimed',
  source: {
    name: 'untimed',
    topic: 'u/{device}',
    map: {
      latitude: { path: 'lat' },
      longitude: { path: 'lon' },
      signals: [{ type: 'RAW', path: '"a.b".c' }],
      fields: { tenant: { path: '$properties.tenant', type: 'text' } },
    },
  },
  world: { ...world, clockOffsetMs: -3_600_000 },
  topics: ['u/1', 'u/2', 'u/\u00fc'],
  template: () => ({ lat: latitude, lon: longitude, 'a.b': { c: (random) => random.below(10) } }),
}

/** A condition and a field over properties of MQTT 5, which messages without any are not parsed for. */
const packet: Trial = {
  name: 'packet',
  source: {
    name: 'packet',
    topic: 'p/{device}',
    when: 'packet.content_type != "status" && packet.user.seq != 3',
    map: { ...truckMap, fields: { kind: { path: '$packet.content_type', type: 'text' } } },
  },
  world: { ...world, table: 'device\n' },
  topics: ['p/1', 'p/2'],
  template: truckTemplate,
}

/** Conditions over all kinds of values, with captures of the topic. */
const conditional: Trial = {
  name: 'conditional',
  source: {
    name: 'conditional',
    topic: 'c/{kind}/{device}',
    when: 'topic.kind != "x" && (event in ["vp", 5] || !has(event)) && !(mode in ["off", "\u00f6n"]) && message.sat > 2',
    fix: { valid: 'gps.ok && gps.hdop < 20 || gps.type == "3D" && constructor == null' },
    map: truckMap,
  },
  world: { ...world, table: 'device\n' },
  topics: ['c/a/1', 'c/b/2', 'c/x/1'],
  template: (clock, random) => ({
    ...truckTemplate(clock, random),
    event: () => random.pick(['vp', 5, '5', 'VP', null, 'vp', 'vp', 'vp', 'vp']),
    mode: () => random.pick(['on', 'off', true, 0, 'on', 'on', '\u00f6n']),
    sat: () => random.pick([7, 9, '8', 2, null, 5, 6, 1e1]),
    gps: {
      ...(truckTemplate(clock, random)['gps'] as Template),
      ok: () => random.pick([true, 1, 'yes', false, null, true]),
      hdop: () => random.pick([1.5, 19.99, 20, '3', -1, 5]),
      type: () => random.pick(['3D', '2D', 3]),
    },
  }),
}

/** Seconds with decimals, device times that are taken as they are, and signals alone. */
const signalsOnly: Trial = {
  name: 'signals',
  source: {
    name: 'signals',
    topic: 's/{device}',
    map: {
      time: { path: 't', format: ['auto', 'iso', 'words'], zone: 'utc' },
      signals: [
        { type: 'OBD_LIFETIME_ODOMETER', path: 'km' },
        { type: 'X', path: 'x' },
      ],
    },
  },
  world: {
    ...world,
    clocks: { on_future: 'restamp' },
    plausibility: { odometer: { action: 'off', jumps: 'off' } },
  },
  topics: ['s/1', 's/2'],
  template: (clock) => ({
    t: (random) =>
      random.pick([timeOf(clock, random), clock.now / 1000, new Date(clock.now).toISOString().slice(0, 19)]),
    km: (random) => counterOf(clock, random, 90_000, 60),
    x: (random) => random.below(100),
  }),
}

/** Local times in the zone of the device, of which one has none. */
const local: Trial = {
  name: 'local',
  source: {
    name: 'local',
    topic: 'l/{device}',
    map: { ...truckMap, time: { path: 'ts', format: ['dmy', 'iso'], zone: 'device' } },
  },
  world: { ...world, table: 'device,zone\n1,Europe/Berlin\n2,utc\n3,Australia/Lord_Howe\n4,\n' },
  topics: ['l/1', 'l/2', 'l/3', 'l/4'],
  template: (clock, random) => ({
    ...truckTemplate(clock, random),
    ts: (one) => {
      const text = new Date(timeOf(clock, one)).toISOString()
      const [date = '', clockText = ''] = text.split(/[TZ]/)
      return one.pick([
        text,
        text.slice(0, 23),
        `${date.split('-').toReversed().join('.')} ${clockText}`,
        '31.02.24 00:00',
      ])
    },
  }),
}

/** The same in the zone of the source, at a change of its clock. */
const zoned: Trial = {
  ...local,
  name: 'zoned',
  source: {
    name: 'zoned',
    topic: 'z/{device}',
    map: { ...truckMap, time: { path: 'ts', format: ['ymd', 'datetime'], zone: 'America/New_York' } },
  },
  topics: ['z/1', 'z/2'],
  template: (clock, random) => ({
    ...truckTemplate(clock, random),
    ts: (one) => {
      const time = one.chance(0.5)
        ? timeOf(clock, one) - 5 * 3_600_000
        : Date.UTC(2024, 2, 10, 0, one.below(300))
      const text = new Date(time).toISOString().slice(0, 23)
      return one.pick([text, text.replaceAll('-', '/').replace('T', ' '), text.replace('T', ' ')])
    },
  }),
}

export const trials: readonly Trial[] = [
  trucks,
  initial,
  whole,
  untimed,
  packet,
  signalsOnly,
  conditional,
  local,
  zoned,
  sharedTrial({ world, map: truckMap, template: truckTemplate }),
  ...['simulator', 'gpsd-tpv', 'tasmota-gps'].map(presetTrial),
]
