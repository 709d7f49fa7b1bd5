import Inspector

/// One position, and when it was recorded if that is known.
package struct Fix: Sendable, Equatable {
    /// Degrees, north positive, -90...90.
    package var latitude: Double
    /// Degrees, east positive, -180...180.
    package var longitude: Double
    package var time: Timestamp?

    /// What to say about a pair of numbers that is no place on Earth, or nil when it is one.
    static func problem(latitude: Double, longitude: Double) -> String? {
        if !(-90...90).contains(latitude) { return "latitude \(latitude) is outside -90...90" }
        if !(-180...180).contains(longitude) { return "longitude \(longitude) is outside -180...180" }
        return nil
    }

    package init(latitude: Double, longitude: Double, time: Timestamp? = nil) {
        self.latitude = latitude
        self.longitude = longitude
        self.time = time
    }

    /// A longitude beyond ±180 is wrapped: tracks across the date line have such, and maps that count from 0 to 360.
    ///
    /// - Throws: What to say about a pair of numbers that is no place on Earth.
    init(wrapping latitude: Double, _ longitude: Double) throws(RowProblem) {
        var wrapped = longitude
        if (180...360).contains(abs(longitude)), abs(longitude) > 180 {
            // A receiver's decimals, without the error of the subtraction.
            wrapped = ((longitude - (longitude < 0 ? -360 : 360)) * 1e9).rounded() / 1e9
        }
        if let problem = Self.problem(latitude: latitude, longitude: wrapped) { throw RowProblem(message: problem) }
        self.init(latitude: latitude, longitude: wrapped)
    }
}

extension Fix: CustomStringConvertible {
    /// What the app shows: `φ:37.3352, λ:-122.0325`.
    package var description: String {
        "φ:\(DecimalText.fixed(latitude, places: 4)), λ:\(DecimalText.fixed(longitude, places: 4))"
    }
}

/// The body of a location message.
package enum LocationPayload {
    package static let contentType = "application/json;charset=utf-8"

    /// JSON with exactly the keys `deviceID`, `lat`, `lng` and `ts`.
    package static func json(deviceID: String, fix: Fix, at time: Timestamp) -> String {
        """
        {"deviceID":\(JSON.quoted(deviceID)),"lat":\(fix.latitude.plainDecimal),"lng":\(fix.longitude.plainDecimal),\
        "ts":"\(time)"}
        """
    }
}
