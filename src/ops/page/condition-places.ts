// condition-places.ts: which view shows what a condition is about, and which change may end it.

import type { ChangeOffer } from './page-changes.ts'

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

export const probeOffer: ChangeOffer = { action: 'probe', parameters: {}, name: 'Try the service now' }
export const reloadOffer: ChangeOffer = { action: 'reload', parameters: {}, name: 'Reload the config' }
export const testAlertOffer: ChangeOffer = {
  action: 'alerts/test',
  parameters: {},
  name: 'Send a test alert',
}

const offers: Readonly<Record<string, ChangeOffer>> = {
  ALERTS_FAILING: testAlertOffer,
  // A probe reads the credentials again first.
  CREDENTIALS_MISSING: probeOffer,
  CREDENTIALS_STALE: probeOffer,
  DELIVERY_STALLED: probeOffer,
  ENDPOINT_UNAUTHORIZED: probeOffer,
  ENDPOINT_UNAVAILABLE: probeOffer,
  MAPPING_STALE: reloadOffer,
  RETRY_AFTER: probeOffer,
  WRAPPER_REFUSED: probeOffer,
}

export function offerOfCondition(code: string): ChangeOffer | null {
  return offers[code] ?? null
}
