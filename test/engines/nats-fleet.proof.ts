import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { natsMappings } from './engine-fleet.ts'
import { describeFleets } from './fleet-cases.ts'
import { hasNatsCluster, startNats } from './nats-engine.ts'

describeFleets({
  name: 'NATS',
  isThere: hasNatsCluster,
  start: () => startNats({ nodes: 3, lines: natsMappings }),
  leading: '$MQTT_msgs/gw-0',
  limited: {
    options: {},
    async limit(engine) {
      const bus = await connect({ servers: [...engine.urls] })
      const manager = await jetstreamManager(bus)
      await manager.streams.update('$MQTT_msgs', { max_msgs: 500, discard: 'new' })
      await bus.close()
    },
  },
})
