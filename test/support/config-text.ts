// config-text.ts: the config file of a gateway, with the sections that a test is about.

/** Of a source: a time and a position. */
export const positionMap =
  '{ time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }'

/** A source of a time, a position and an odometer. */
export const odometerSource = `
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      signals: [{ type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }]`

type Sections = {
  /** YAML of `ingest.broker`; `ingest` is the whole section instead. */
  broker?: string
  ingest?: string
  sources?: string
  spool?: string
  /** YAML of members, beside those that are always there. */
  delivery?: string
  ops?: string
  stopDeadline?: string
  /** YAML of further sections. */
  more?: string
}

export function configText({
  broker = '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } }',
  // What a test waits for is not how long others may be waited for.
  ingest = `\n  ack_delay_max: 0s\n  broker: ${broker}`,
  sources = `[{ name: trucks, topic: "telemetry/v1/{device}", map: ${positionMap} }]`,
  spool = '{ path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }',
  delivery = 'batch: { linger: 20ms }',
  ops = '',
  stopDeadline = '5s',
  more = '',
}: Sections = {}): (baseUrl: string) => string {
  return (baseUrl) => `
ingest: ${ingest}
sources: ${sources}
spool: ${spool}
delivery: { base_url: "${baseUrl}"${delivery === '' ? '' : `, ${delivery}`} }
ops: { listen: "127.0.0.1:0", stop_deadline: ${stopDeadline}${ops === '' ? '' : `, ${ops}`} }
${more}
`
}
