// mqtt-bridges.ts: bridges to MQTT brokers as the config has them; the schema knows other kinds, too.

import type { z } from 'zod'
import { bridgesSchema } from '../../src/ingest/bridge-kinds.ts'
import type { mqttBridgeSchema } from '../../src/ingest/bridges/bridge-config.ts'

type MqttBridgeConfig = z.output<typeof mqttBridgeSchema>

/** Throws where one is not valid, or of another kind. */
export function parseMqttBridges(bridges: readonly object[]): MqttBridgeConfig[] {
  return bridgesSchema.parse(bridges).map((bridge) => {
    if (bridge.kind !== 'mqtt') throw new Error(`the bridge ${bridge.name} is one of ${bridge.kind}`)
    return bridge
  })
}
