// condition-places.ts: which view shows what a condition is about.

const places: Readonly<Record<string, readonly [path: string, name: string]>> = {
  AUTH_FAILURES: ['/page/refused', 'Refused connections'],
  BATCHES_HELD: ['/page/batches', 'Held batches'],
  BATCH_STUCK: ['/page/batches', 'Held batches'],
  CLIENTS_REFUSED: ['/page/refused', 'Refused connections'],
  CLIENT_ID_SHARED: ['/page/refused', 'Refused connections'],
  DEAD_LETTERS: ['/page/dead-letters', 'Dead letters'],
  DEAD_LETTERS_FULL: ['/page/dead-letters', 'Dead letters'],
  DEAD_LETTERS_WAITING: ['/page/dead-letters', 'Dead letters'],
  DEVICES_NOT_MAPPED: ['/page/devices?state=not_mapped', 'Devices that are not mapped'],
  DEVICES_REPEATING: ['/page/devices?state=repeating', 'Devices that repeat'],
  DEVICES_SILENT: ['/page/devices?state=silent', 'Silent devices'],
  DEVICE_SILENT: ['/page/devices?state=silent', 'Silent devices'],
  FLEET_PART_SILENT: ['/page/devices?state=silent', 'Silent devices'],
  NOTHING_ACCEPTED: ['/page/ledger?outcome=retried', 'What the service refused'],
  NOTHING_MAPPED: ['/page/devices?state=not_mapped', 'Devices that are not mapped'],
  PAYLOADS_FAILING: ['/page/ledger?outcome=retried', 'What the service refused'],
  PUBLISH_REFUSED: ['/page/refused', 'Refused connections'],
  QUARANTINE_FULL: ['/page/quarantine', 'Quarantine'],
  TLS_HANDSHAKES_FAIL: ['/page/refused', 'Refused connections'],
}

export function placeOfCondition(code: string): { path: string; name: string } | null {
  const place = places[code]
  return place === undefined ? null : { path: place[0], name: place[1] }
}
