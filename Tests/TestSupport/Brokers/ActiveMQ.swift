import Foundation

public enum ActiveMQ {
    static var isUnpacked: Bool { access("/usr/share/activemq/bin/activemq.jar", R_OK) == 0 }
}
