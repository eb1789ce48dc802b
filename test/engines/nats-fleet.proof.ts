import { natsMappings } from './engine-fleet.ts'
import { describeFleets } from './fleet-cases.ts'
import { hasNatsCluster, startNats } from './nats-engine.ts'

describeFleets({
  name: 'NATS',
  isThere: hasNatsCluster,
  start: () => startNats({ nodes: 3, lines: natsMappings }),
  leading: '$MQTT_msgs/gw-0',
})
